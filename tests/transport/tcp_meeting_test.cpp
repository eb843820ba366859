/// The sentences of a meeting: to its guests, and about guests that leave.

#include "transport/tcp/meeting.hpp"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "support/ranks.hpp"

using namespace baton;
using namespace std::chrono_literals;
using support::error_of;
using tcp::Bytes;

/// The system's, in which no wait is longer than 10 ms.
int poll(pollfd* waits, nfds_t count, int milliseconds) {
  const timespec at_most{.tv_sec = 0, .tv_nsec = std::clamp(milliseconds, 0, 10) * 1'000'000};
  return ppoll(waits, count, &at_most, nullptr);
}

namespace {

const Bytes key(8, std::byte{7});

std::pair<tcp::Socket, tcp::Socket> connection() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0)
    throw std::runtime_error("cannot make a pair of sockets");
  return {tcp::Socket(ends[0]), tcp::Socket(ends[1])};
}

tcp::Guest let_in(tcp::Socket socket) {
  tcp::Stranger stranger(std::move(socket));
  tcp::Stranger::State state = tcp::Stranger::State::waiting;
  while (state == tcp::Stranger::State::waiting) {
    state = stranger.advance(key);
    std::this_thread::yield();
  }
  REQUIRE(state == tcp::Stranger::State::proved);
  return stranger.guest();
}

/// What rank 1 of 2 hears at a place where `speak` answers it.
Error heard(const std::function<void(tcp::Guest)>& speak) {
  auto [ours, its] = connection();
  Error error(ErrorCode::mismatch, "");
  std::jthread guest([&, socket = std::move(its)] {
    error = error_of([&] {
      tcp::attend(socket, "the place", key, {.rank = 1, .size = 2}, Bytes(3),
                  std::chrono::steady_clock::now() + 20s);
    });
  });
  speak(let_in(std::move(ours)));
  guest.join();
  return error;
}

}  // namespace

TEST_CASE("meeting: a guest that leaves before the answer is an error of the transport") {
  tcp::Meeting meeting("the place", 2, 5s);
  meeting.bring(Bytes(1));
  CHECK_FALSE(meeting.over());
  const Error left = heard([&](tcp::Guest guest) {
    guest.socket = tcp::Socket(-1);  // as if the connection ended here
    meeting.greet(std::move(guest));
  });
  CHECK(left.code == ErrorCode::transport);
  CHECK(left.rank == 1);
  CHECK(std::string(left.what()) ==
        "rank 1 was expected to get all ranks' addresses from the place, but the connection ended");
  CHECK(meeting.over());
  const Error error = error_of([&] { meeting.end(key, 0); });
  CHECK(error.code == ErrorCode::transport);
  CHECK(error.rank == 0);
  CHECK(std::string(error.what()) ==
        "2 ranks were expected to stay at the place until all have come, but one left");
}

TEST_CASE("meeting: a wait is as long as its deadline, whatever one call of the system waits") {
  auto [ours, its] = connection();
  std::jthread late([socket = std::move(its)] {
    std::this_thread::sleep_for(100ms);
    const std::byte word[4]{};
    CHECK(socket.write(word, std::chrono::steady_clock::now() + 20s));
  });
  std::byte word[4];
  CHECK(ours.read(word, std::chrono::steady_clock::now() + 2h));
}

TEST_CASE("meeting: a complaint has one of our codes") {
  const std::string why = "this is why";
  constexpr auto last = static_cast<std::uint64_t>(ErrorCode::device);
  const auto with_code = [&](std::uint64_t code) {
    return heard([&](const tcp::Guest& guest) {
      const bool whole = tcp::answer(guest, key, code, std::as_bytes(std::span(why)),
                                     std::chrono::steady_clock::now() + 20s);
      CHECK((whole || code > last + 1));  // a guest does not wait for the text of another program
    });
  };
  for (std::uint64_t code = 0; code <= last; ++code) {
    const Error error = with_code(code + 1);
    CHECK(error.code == static_cast<ErrorCode>(code));
    CHECK(error.what() == why);
    CHECK(error.rank == 1);
  }
  const Error error = with_code(last + 2);
  CHECK(error.code == ErrorCode::transport);
  CHECK(std::string(error.what()) ==
        "rank 1 was expected to find the place, but found another program");
}
