#include "lobby.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "../../base/forked.hpp"
#include "../../base/raise.hpp"

namespace baton::tcp {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t most_milliseconds = 1u << 30;  // 12 days
constexpr auto watch = 10s;                            // of a thread that nothing wakes
constexpr std::string_view place = "the process that made the identifier";

bool wanted(std::string_view name, std::string_view interfaces) {
  if (interfaces.empty()) return true;
  const bool others = interfaces.front() == '^';
  if (others) interfaces.remove_prefix(1);
  const bool exact = !interfaces.empty() && interfaces.front() == '=';
  if (exact) interfaces.remove_prefix(1);
  bool found = false;
  while (!interfaces.empty()) {
    const std::string_view one = interfaces.substr(0, interfaces.find(','));
    interfaces.remove_prefix(std::min(one.size() + 1, interfaces.size()));
    found |= exact ? name == one : !one.empty() && name.starts_with(one);
  }
  return found != others;
}

}  // namespace

Lobby::Lobby(std::uint64_t number, std::span<const std::string> addresses)
    : key_(proof_key(number)),
      doors_(doors_at(addresses)),
      end_(event()),
      thread_([this] { receive(); }) {}

Lobby::~Lobby() {
  if (process_ == getpid()) {
    static_cast<void>(eventfd_write(end_.descriptor(), 1));  // fails only at 2^64 - 1
    thread_.join();
  } else {
    base::leave_to_parent(std::move(thread_));  // with which a fork shares the event
  }
}

void Lobby::receive() {
  std::map<std::uint64_t, Meeting> meetings;
  Reception reception(key_);
  const int end = end_.descriptor();
  while (!readable({&end, 1}, Clock::now())) {
    Time until = Clock::now() + watch;
    for (const auto& [number, meeting] : meetings) until = std::min(until, meeting.until());
    if (std::optional<Guest> guest = reception.next(doors_, until + 1ms, end)) {
      const Hello& hello = guest->hello;
      const auto time = std::min<std::uint64_t>(hello.milliseconds, most_milliseconds);
      meetings
          .try_emplace(hello.meeting, std::string(place), hello.size,
                       std::chrono::milliseconds(time))
          .first->second.greet(std::move(*guest));
    }
    for (auto one = meetings.begin(); one != meetings.end();) {
      if (!one->second.over()) {
        ++one;
        continue;
      }
      try {
        one->second.end(key_, 0);
      } catch (const Error&) {  // its guests were told
      }
      one = meetings.erase(one);
    }
  }
}

std::vector<std::string> own_addresses(std::string_view interfaces) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {"127.0.0.1"};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(list, &freeifaddrs);
  std::array<std::vector<std::string>, 3> found;  // IPv4, IPv6, loopback
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const bool loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
    if (!loopback && !wanted(one->ifa_name, interfaces)) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (one->ifa_addr->sa_family == AF_INET) {
      const auto* at = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
      if (inet_ntop(AF_INET, &at->sin_addr, text.data(), text.size()) != nullptr)
        found[loopback ? 2 : 0].emplace_back(text.data());
    } else if (one->ifa_addr->sa_family == AF_INET6 && !loopback) {
      const auto* at = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&at->sin6_addr)) continue;
      if (inet_ntop(AF_INET6, &at->sin6_addr, text.data(), text.size()) != nullptr)
        found[1].push_back(fmt::format("[{}]", text.data()));
    }
  }
  std::vector<std::string> addresses;
  for (auto& group : found) addresses.insert(addresses.end(), group.begin(), group.end());
  return addresses;
}

std::vector<std::string> public_addresses(std::string_view interfaces) {
  std::vector<std::string> addresses = own_addresses(interfaces);
  if (addresses.size() > 1) addresses.pop_back();
  return addresses;
}

std::vector<Bytes> exchange_in_lobby(std::span<const std::string> addresses, std::uint64_t number,
                                     Hello hello, const Bytes& own,
                                     std::chrono::milliseconds limit) {
  const Bytes key = proof_key(number);
  hello.milliseconds = static_cast<std::uint64_t>(limit.count());
  if (addresses.empty()) base::refuse("addresses of {} were expected, but found none", place);
  const Time until = Clock::now() + limit;
  std::string reason;
  do {
    for (const std::string& address : addresses) {
      const auto host = connected(address, std::min(until, Clock::now() + 1s), reason);
      if (!host) continue;
      try {
        return attend(*host, fmt::format("{} at {}", place, address), key, hello, own,
                      Clock::now() + limit + slack);
      } catch (const Error& error) {
        if (error.code != ErrorCode::transport) throw;
        reason = error.what();  // another program listens there
      }
    }
    std::this_thread::sleep_for(10ms);
  } while (Clock::now() < until);
  base::raise(ErrorCode::timeout,
              fmt::format("rank {} was expected to reach {} within {} ms, but found: {}",
                          hello.rank, place, limit.count(), reason),
              {.rank = hello.rank});
}

}  // namespace baton::tcp
