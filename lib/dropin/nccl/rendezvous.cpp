#include "rendezvous.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <utility>

#include "../../base/raise.hpp"
#include "../../transport/tcp/lobby.hpp"
#include "baton/options.hpp"
#include "baton/staged.hpp"
#include "baton/thread.hpp"
#include "baton/ucx.hpp"
#include "platform.hpp"

namespace baton::nccl_abi {
namespace {

using namespace std::chrono_literals;

std::uint64_t random_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

/// How long ranks wait for each other at the start.
std::chrono::milliseconds patience() {
  const auto timeout = Options::from_environment().timeout;
  return timeout.count() > 0 ? timeout : std::chrono::milliseconds(10min);
}

/// This host's addresses that lead here from others; loopback where there are none.
std::vector<std::string> public_addresses() {
  const char* const interfaces = std::getenv("NCCL_SOCKET_IFNAME");
  return tcp::public_addresses(interfaces ? interfaces : "");
}

/// This process's lobby, with the key to it.
struct Door {
  const std::uint64_t key = random_number();
  const std::vector<std::string> addresses = public_addresses();
  const tcp::Lobby lobby{key, addresses};
};

Door& door() {
  static Door door;
  return door;
}

/// What ranks tell each other first.
struct Card {
  std::uint64_t process;
  std::int32_t pid, ordinal;
};

Card own_card(int ordinal) {
  static const std::uint64_t process = random_number();
  return {process, getpid(), ordinal};  // a fork has the same number
}

/// Transports among the threads of this process, until their ranks come.
class Seats {
 public:
  std::unique_ptr<Transport> take(std::uint64_t meeting, int rank, const std::vector<Card>& cards) {
    const std::lock_guard lock(mutex_);
    Table& table = tables_[meeting];
    if (table.seats.empty()) {
      ThreadOptions options;
      for (const Card& card : cards) options.devices.push_back(platform::device(card.ordinal));
      table.seats = thread_transports(static_cast<int>(cards.size()), options);
    }
    auto seat = std::move(table.seats[static_cast<std::size_t>(rank)]);
    if (++table.taken == table.seats.size()) tables_.erase(meeting);
    return seat;
  }

 private:
  struct Table {
    std::vector<std::unique_ptr<Transport>> seats;
    std::size_t taken = 0;
  };
  std::mutex mutex_;
  std::map<std::uint64_t, Table> tables_;
};

Seats& seats() {
  static Seats seats;
  return seats;
}

}  // namespace

ncclUniqueId make_identifier() {
  const Door& own = door();
  ncclUniqueId identifier{};
  const std::string text = identifier_text(own.key, random_number(), own.lobby.port(),
                                           own.addresses, sizeof identifier.internal);
  std::memcpy(identifier.internal, text.c_str(), text.size());
  return identifier;
}

Origin origin_of(const ncclUniqueId& identifier) {
  return parse_identifier({identifier.internal, strnlen(identifier.internal, sizeof identifier)});
}

std::unique_ptr<Transport> connect(const Origin& origin, int rank, int size, int ordinal) {
  const Card own = own_card(ordinal);
  std::vector<Card> cards(static_cast<std::size_t>(size), own);
  const auto exchange = [&](const Origin& where, const tcp::Bytes& block) {
    return tcp::exchange_in_lobby(where.addresses, where.key,
                                  {.meeting = where.meeting, .rank = rank, .size = size}, block,
                                  patience());
  };
  if (size > 1) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&own);
    const auto blocks = exchange(origin, {bytes, bytes + sizeof own});
    for (std::size_t r = 0; r < cards.size(); ++r) {
      if (blocks[r].size() != sizeof(Card))
        throw Error(ErrorCode::mismatch,
                    fmt::format("expected rank {} to have this version of the library, found "
                                "another one",
                                r));
      std::memcpy(&cards[r], blocks[r].data(), sizeof(Card));
    }
  }
  const bool one_process = std::ranges::all_of(
      cards, [&](const Card& card) { return card.process == own.process && card.pid == own.pid; });
  // A communicator of one rank meets nobody, so nothing tells it from another one.
  if (size == 1) {
    return std::move(thread_transports(1, {.devices = {platform::device(ordinal)}}).front());
  }
  if (one_process) return seats().take(origin.meeting, rank, cards);
  return device_transport(
      ucx_transport(rank, size,
                    [&](const tcp::Bytes& block) { return exchange(origin.with(1), block); },
                    {.concurrent = true}),
      platform::device(ordinal));
}

}  // namespace baton::nccl_abi
