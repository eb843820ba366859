#pragma once
/// Meetings at a process that need not be a rank.

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "meeting.hpp"

namespace baton::tcp {

/// A place at which any number of groups meet, each for a meeting of its own number. A thread
/// receives them.
class Lobby {
 public:
  /// Listens at these addresses of this host, all at one free port, and at no others. Guests prove
  /// that they know `number` and BATON_SECRET; both are never sent. A meeting ends when its first
  /// guest has waited for as long as it will. Throws Error(transport).
  Lobby(std::uint64_t number, std::span<const std::string> addresses);
  ~Lobby();
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

  int port() const { return doors_.front().port(); }

 private:
  void receive();

  const pid_t process_ = getpid();
  const Bytes key_;
  const std::vector<Socket> doors_;
  const Socket end_;    // an event: the lobby ends
  std::thread thread_;  // last: it uses all other members
};

/// This host's addresses, of its interfaces that are up, loopback last. `interfaces`: names that
/// begin so, "eth,ib"; exact names after "="; all others after "^"; empty: all.
std::vector<std::string> own_addresses(std::string_view interfaces = {});

/// Those of them that lead here from others; loopback where there are none.
std::vector<std::string> public_addresses(std::string_view interfaces = {});

/// All ranks' blocks in rank order, through the lobby of this number at the first of `addresses`
/// ("host:port") that leads there. Collective. `hello` has the meeting, rank and size. Throws
/// Error(transport, timeout, mismatch).
std::vector<Bytes> exchange_in_lobby(std::span<const std::string> addresses, std::uint64_t number,
                                     Hello hello, const Bytes& own,
                                     std::chrono::milliseconds limit);

}  // namespace baton::tcp
