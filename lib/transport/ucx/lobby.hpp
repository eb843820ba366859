#pragma once
/// Meetings at a process that need not be a rank.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "meeting.hpp"

namespace baton::ucx {

/// A place at which any number of groups meet, each for a meeting of its own number. A thread
/// receives them.
class Lobby {
 public:
  /// Listens at a free port, on all addresses of this host. Guests know the `key`. A meeting ends
  /// when its first guest has waited for as long as it will. Throws Error(transport).
  explicit Lobby(std::uint64_t key);
  ~Lobby();
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

  int port() const { return port_; }

 private:
  void receive();

  const std::uint64_t key_;
  const Socket socket_;
  const int port_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // last: it uses all other members
};

/// This host's addresses, of its interfaces that are up, loopback last. `interfaces`: names that
/// begin so, "eth,ib"; exact names after "="; all others after "^"; empty: all.
std::vector<std::string> own_addresses(std::string_view interfaces = {});

/// All ranks' blocks in rank order, through the lobby at the first of `addresses` ("host:port")
/// that leads there. Collective. `hello` has all but times and bytes. Throws Error(transport,
/// timeout, mismatch).
std::vector<Bytes> exchange_in_lobby(std::span<const std::string> addresses, Hello hello,
                                     const Bytes& own, std::chrono::milliseconds limit);

}  // namespace baton::ucx
