#include "transport/tcp/lobby.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/ranks.hpp"

using namespace baton;
using namespace std::chrono_literals;
using support::error_of;
using support::holds;
using tcp::Bytes;

namespace {
std::atomic<int> self_connections = 0;
}

/// The system's. So many times, the system chooses the address that is called as the socket's own:
/// the socket is then connected to itself.
int connect(int socket, const sockaddr* to, socklen_t length) {
  if (self_connections > 0 && self_connections-- > 0 && bind(socket, to, length) != 0) return -1;
  return static_cast<int>(syscall(SYS_connect, socket, to, length));
}

namespace {

constexpr std::uint64_t key = 0x1234;
const std::vector<std::string> here{"127.0.0.1"};

Bytes block_of(int rank, std::uint64_t meeting) {
  return Bytes(static_cast<std::size_t>(rank) + 1, static_cast<std::byte>(meeting + 10u));
}

std::vector<Bytes> come(const tcp::Lobby& lobby, std::uint64_t meeting, int rank, int size,
                        std::chrono::milliseconds limit = 20s) {
  // The first address leads nowhere.
  const std::string addresses[] = {"127.0.0.1:1", "127.0.0.1:" + std::to_string(lobby.port())};
  return tcp::exchange_in_lobby(addresses, key, {.meeting = meeting, .rank = rank, .size = size},
                                block_of(rank, meeting), limit);
}

void side_by_side(const std::vector<std::function<void()>>& bodies) {
  std::vector<std::thread> threads;
  for (const auto& body : bodies) threads.emplace_back(body);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("lobby: groups meet, each by itself, whoever comes first") {
  const tcp::Lobby lobby(key, here);
  std::mutex mutex;
  for (const int size : {1, 2, 5}) {
    std::vector<std::function<void()>> bodies;
    for (const std::uint64_t meeting : {1u, 2u})
      for (int rank = 0; rank < size; ++rank)
        bodies.emplace_back([&, meeting, rank] {
          const auto blocks = come(lobby, meeting, rank, size);
          const std::lock_guard lock(mutex);
          REQUIRE(blocks.size() == static_cast<std::size_t>(size));
          for (int r = 0; r < size; ++r)
            CHECK(blocks[static_cast<std::size_t>(r)] == block_of(r, meeting));
        });
    side_by_side(bodies);
    std::ranges::reverse(bodies);
    side_by_side(bodies);
  }
}

TEST_CASE("lobby: all that came hear who is missing, came twice, or counts otherwise") {
  const tcp::Lobby lobby(key, here);
  std::mutex mutex;
  const auto all_hear = [&](const std::vector<std::pair<int, int>>& guests, ErrorCode code,
                            const std::vector<std::string>& parts) {
    std::vector<std::function<void()>> bodies;
    for (const auto& [rank, size] : guests)
      bodies.emplace_back([&, rank = rank, size = size] {
        const Error error = error_of([&] { come(lobby, 7, rank, size, 300ms); });
        const std::lock_guard lock(mutex);
        CHECK(error.code == code);
        CHECK_MESSAGE(holds(error.what(), parts), error.what());
      });
    side_by_side(bodies);
  };
  all_hear({{0, 4}, {2, 4}}, ErrorCode::timeout, {"4 ranks", "did not come: 1 3"});
  all_hear({{0, 2}, {0, 2}}, ErrorCode::mismatch, {"each once", "rank 0 came twice"});
  all_hear({{0, 2}, {2, 2}}, ErrorCode::mismatch, {"says that it is rank 2"});
  // Afterwards it is as good as new.
  side_by_side({[&] { CHECK(come(lobby, 7, 0, 2).size() == 2); },
                [&] { CHECK(come(lobby, 7, 1, 2).size() == 2); }});
}

TEST_CASE("lobby: an address where another program listens is passed over") {
  const tcp::Lobby another(key + 1, here), lobby(key, here);
  const std::string addresses[] = {"127.0.0.1:" + std::to_string(another.port()),
                                   "127.0.0.1:" + std::to_string(lobby.port())};
  const auto blocks = tcp::exchange_in_lobby(addresses, key, {.meeting = 3, .rank = 0, .size = 1},
                                             block_of(0, 3), 20s);
  CHECK(blocks == std::vector<Bytes>{block_of(0, 3)});
  const Error error =
      error_of([&] { tcp::exchange_in_lobby({}, key, {.rank = 0, .size = 1}, {}, 20s); });
  CHECK(error.code == ErrorCode::invalid_argument);
}

TEST_CASE("lobby: guests without the key, and a place that is not there, end with a sentence") {
  const tcp::Lobby lobby(key + 1, here);
  CHECK(holds(error_of([&] { come(lobby, 1, 0, 1, 300ms); }).what(),
              {"rank 0", "the process that made the identifier", "BATON_SECRET", "has none"}));
  const std::string nowhere[] = {"127.0.0.1:1"};
  const Error error =
      error_of([&] { tcp::exchange_in_lobby(nowhere, key, {.rank = 3, .size = 4}, {}, 200ms); });
  CHECK(error.code == ErrorCode::timeout);
  CHECK(holds(error.what(), {"rank 3", "to reach", "within 200 ms", "refused"}));
}

TEST_CASE("lobby: loopback is the last of a host's addresses, interfaces can be chosen") {
  CHECK(tcp::own_addresses().back() == "127.0.0.1");
  CHECK(tcp::own_addresses("=no-such-interface") == std::vector<std::string>{"127.0.0.1"});
  CHECK(tcp::own_addresses("^no-such-interface") == tcp::own_addresses());
}

TEST_CASE("one bracket makes no address") {
  for (const char* const address : {"[::1:80", "f::1]:80"}) {
    std::string reason;
    const Error error =
        error_of([&] { tcp::connected(address, std::chrono::steady_clock::now() + 2s, reason); });
    CHECK(holds(error.what(), {"the host of \"" + std::string(address) + "\"", "to be known"}));
  }
}

TEST_CASE("lobby: it listens at its addresses and at no others") {
  std::vector<std::string> all = tcp::own_addresses();
  REQUIRE(all.size() > 0);
  const tcp::Lobby lobby(key, here);
  for (const std::string& address : all) {
    std::string reason;
    const bool reached = tcp::connected(address + ":" + std::to_string(lobby.port()),
                                        std::chrono::steady_clock::now() + 100ms, reason)
                             .has_value();
    CHECK(reached == (address == here[0]));
  }
  const tcp::Lobby everywhere(key, all);
  for (const std::string& address : all) {
    std::string reason;
    CHECK(tcp::connected(address + ":" + std::to_string(everywhere.port()),
                         std::chrono::steady_clock::now() + 2s, reason));
  }
}

TEST_CASE("lobby: silent strangers hold up nobody, and find room for a bounded number") {
  const tcp::Lobby lobby(key, here);
  std::vector<tcp::Socket> strangers;
  for (int i = 0; i < 300; ++i) {  // more than there is room for
    std::string reason;
    auto one = tcp::connected("127.0.0.1:" + std::to_string(lobby.port()),
                              std::chrono::steady_clock::now() + 5s, reason);
    REQUIRE(one);
    strangers.push_back(std::move(*one));
  }
  side_by_side({[&] { CHECK(come(lobby, 7, 0, 2).size() == 2); },
                [&] { CHECK(come(lobby, 7, 1, 2).size() == 2); }});
}

TEST_CASE("whoever calls an address of its own machine before anybody listens never hears itself") {
  const std::string host = "127.7.7.7:";  // nobody else's
  const std::string address = host + std::to_string(tcp::listening(host + "0").port());
  const auto until = std::chrono::steady_clock::now() + 20s;
  int error = 0;
  self_connections = 1;
  CHECK_FALSE(tcp::connected_at_once(address, until, error));
  CHECK(error == ECONNREFUSED);
  // Nor does it keep the address from those that listen there.
  const tcp::Socket door = tcp::listening(address);
  self_connections = 3;
  std::string reason;
  CHECK(tcp::connected(address, until, reason));
  CHECK(door.accept());
  self_connections = 0;
}

TEST_CASE("lobby: a process forked from its own ends without it") {
  auto lobby = std::make_unique<tcp::Lobby>(key, here);
  const pid_t child = fork();
  if (child == 0) {
    lobby.reset();
    _exit(0);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(come(*lobby, 7, 0, 1).size() == 1);
}
