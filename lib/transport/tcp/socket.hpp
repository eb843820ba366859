#pragma once
/// The small part of TCP that a meeting at one address needs. Every call has a deadline.

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace baton::tcp {

using Time = std::chrono::steady_clock::time_point;

/// A socket; the destructor closes it. Calls return false if the other side closed it or time is
/// up.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  bool write(std::span<const std::byte> bytes, Time until) const;
  bool read(std::span<std::byte> bytes, Time until) const;
  /// The number of bytes that are there and were read; none: the other side closed it.
  std::optional<std::size_t> read_some(std::span<std::byte> bytes) const;
  /// The next connection to a listening socket; none: nobody waits there.
  std::optional<Socket> accept() const;
  /// Its own port.
  int port() const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Whether one of these descriptors can be read before `until`; negative ones are passed over.
bool readable(std::span<const int> descriptors, Time until);

/// A socket that listens at "host:port"; port 0: any. Throws Error(invalid_argument, transport).
Socket listening(const std::string& address);

/// Listens at those of the addresses that can be listened at, all at one port. Throws
/// Error(transport).
std::vector<Socket> doors_at(std::span<const std::string> addresses);
/// An event, for readable(): not there until somebody writes to it. Throws Error(transport).
Socket event();

/// A connection to "host:port", tried once. None: `error` is the system's code of the last of the
/// host's addresses. Throws Error(invalid_argument, transport).
std::optional<Socket> connected_at_once(const std::string& address, Time until, int& error);

/// A connection to "host:port"; the other side may begin to listen later. None: time is up, and
/// `reason` tells why the last attempt failed. Throws Error(invalid_argument, transport).
std::optional<Socket> connected(const std::string& address, Time until, std::string& reason);

}  // namespace baton::tcp
