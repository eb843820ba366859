#pragma once
/// TCP, as far as a meeting at one address needs it. Everything ends at a given time.

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace baton::ucx {

using Time = std::chrono::steady_clock::time_point;

/// A socket, closed with its owner. Calls say by false that the other side ended it, or that time
/// is up.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&&) = delete;

  bool write(std::span<const std::byte> bytes, Time until) const;
  bool read(std::span<std::byte> bytes, Time until) const;
  /// The next connection to a socket that listens; none: time is up.
  std::optional<Socket> accept(Time until) const;

 private:
  int descriptor_;
};

/// A socket that listens at "host:port". Throws Error(invalid_argument, transport).
Socket listening(const std::string& address);

/// A connection to "host:port", where somebody may begin to listen later. None: time is up, and
/// `reason` says why the last attempt failed. Throws Error(invalid_argument, transport).
std::optional<Socket> connected(const std::string& address, Time until, std::string& reason);

}  // namespace baton::ucx
