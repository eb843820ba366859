#include "socket.hpp"

#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "../../base/raise.hpp"

namespace baton::tcp {
namespace {

using namespace std::chrono_literals;

std::string text_of(int error) { return std::generic_category().message(error); }

/// Whether one of them is ready before `until`.
bool ready(std::span<pollfd> waits, Time until) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const int found = poll(waits.data(), waits.size(),
                           static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1'000'000)));
    if (found > 0) return true;
    if (found == 0 ? std::chrono::steady_clock::now() >= until : errno != EINTR) return false;
  }
}
bool ready(int descriptor, short events, Time until) {
  pollfd wait{descriptor, events, 0};
  return ready({&wait, 1}, until);
}

struct Release {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, Release>;

/// Accepts "host:port" and "[host]:port".
Addresses resolved(const std::string& address, bool passive) {
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon == std::string::npos ? 0 : colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (host.empty() || colon + 1 == address.size() ||
      address.find_first_not_of("0123456789", colon + 1) != std::string::npos)
    base::refuse("an address \"host:port\" was expected, but found \"{}\"", address);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* list = nullptr;
  const int code = getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &list);
  if (code != 0)
    throw Error(ErrorCode::transport, "the host of \"" + address + "\" was expected to be known, " +
                                          "but found: " + gai_strerror(code));
  return Addresses(list);
}

Socket made(const addrinfo& address, int& descriptor) {
  descriptor = socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                      address.ai_protocol);
  return Socket(descriptor);
}

}  // namespace

bool readable(std::span<const int> descriptors, Time until) {
  std::vector<pollfd> waits;
  for (const int descriptor : descriptors) waits.push_back({descriptor, POLLIN, 0});
  return ready(waits, until);
}

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Socket::write(std::span<const std::byte> bytes, Time until) const {
  while (!bytes.empty()) {
    const ssize_t done = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (done >= 0)
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    else if (errno != EINTR && (errno != EAGAIN || !ready(descriptor_, POLLOUT, until)))
      return false;
  }
  return true;
}

bool Socket::read(std::span<std::byte> bytes, Time until) const {
  while (!bytes.empty()) {
    const ssize_t done = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (done == 0) return false;
    if (done > 0)
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    else if (errno != EINTR && (errno != EAGAIN || !ready(descriptor_, POLLIN, until)))
      return false;
  }
  return true;
}

std::optional<std::size_t> Socket::read_some(std::span<std::byte> bytes) const {
  for (;;) {
    const ssize_t done = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (done > 0) return static_cast<std::size_t>(done);
    if (done == 0 || (errno != EINTR && errno != EAGAIN)) return std::nullopt;
    if (errno == EAGAIN) return 0;
  }
}

std::optional<Socket> Socket::accept() const {
  const int descriptor = accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  // No descriptor is free: the caller would look again at once, as somebody still waits.
  if (descriptor < 0 && (errno == EMFILE || errno == ENFILE)) std::this_thread::sleep_for(10ms);
  return descriptor >= 0 ? std::optional<Socket>(descriptor) : std::nullopt;
}

int Socket::port() const {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (getsockname(descriptor_, reinterpret_cast<sockaddr*>(&own), &length) != 0) return 0;
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                         : reinterpret_cast<const sockaddr_in&>(own).sin_port);
}

Socket listening(const std::string& address) {
  const Addresses all = resolved(address, true);
  int error = 0;
  for (const addrinfo* one = all.get(); one != nullptr; one = one->ai_next) {
    int descriptor = -1;
    Socket socket = made(*one, descriptor);
    const int yes = 1, no = 0;
    if (descriptor >= 0 &&
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        // "[::]" takes guests by IPv4, too, whatever the system's default.
        (one->ai_family != AF_INET6 ||
         setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) == 0) &&
        bind(descriptor, one->ai_addr, one->ai_addrlen) == 0 && listen(descriptor, SOMAXCONN) == 0)
      return socket;
    error = errno;
  }
  base::raise(ErrorCode::transport,
              "rank 0 was expected to listen at " + address + ", but found: " + text_of(error),
              {.rank = 0, .backend_code = error, .backend_text = text_of(error)});
}

// Where another program holds the port at one of them, another port may be free at all.
std::vector<Socket> doors_at(std::span<const std::string> addresses) {
  for (int attempts = 16;; --attempts) {
    std::vector<Socket> doors;
    bool all = true;
    for (const std::string& address : addresses) {
      try {
        const int port = doors.empty() ? 0 : doors.front().port();
        doors.push_back(listening(fmt::format("{}:{}", address, port)));
      } catch (const Error&) {
        all = false;
        if (doors.empty() && &address == &addresses.back()) throw;
      }
    }
    if (all || attempts == 1) return doors;
  }
}

Socket event() {
  const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0)
    base::raise(ErrorCode::transport, "an event was expected of the system, but found none", {});
  return Socket(descriptor);
}

namespace {

/// Where nobody listens, the system may choose the called port as the caller's own: the two ends of
/// the connection are one socket, which keeps the port from those that come to listen there.
bool connected_to_itself(int descriptor) {
  sockaddr_storage own{}, peer{};
  socklen_t own_length = sizeof own, peer_length = sizeof peer;
  return getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &own_length) == 0 &&
         getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0 &&
         own_length == peer_length && std::memcmp(&own, &peer, own_length) == 0;
}

std::optional<Socket> connected_to_one(const Addresses& all, Time until, int& error) {
  for (const addrinfo* one = all.get(); one != nullptr; one = one->ai_next) {
    int descriptor = -1;
    Socket socket = made(*one, descriptor);
    error = 0;
    socklen_t length = sizeof error;
    const bool under_way =
        descriptor >= 0 &&
        (connect(descriptor, one->ai_addr, one->ai_addrlen) == 0 || errno == EINPROGRESS);
    if (under_way && !ready(descriptor, POLLOUT, until))
      error = ETIMEDOUT;
    else if (!under_way || getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
      error = errno;
    if (error == 0 && connected_to_itself(descriptor)) {
      const linger at_once{.l_onoff = 1, .l_linger = 0};  // the port is free, and not in TIME_WAIT
      setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      error = ECONNREFUSED;
    }
    if (error == 0) return socket;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Socket> connected_at_once(const std::string& address, Time until, int& error) {
  return connected_to_one(resolved(address, false), until, error);
}

std::optional<Socket> connected(const std::string& address, Time until, std::string& reason) {
  const Addresses all = resolved(address, false);
  for (;;) {
    int error = 0;
    if (auto socket = connected_to_one(all, until, error)) return socket;
    reason = text_of(error);
    if (std::chrono::steady_clock::now() + 20ms > until) return std::nullopt;
    std::this_thread::sleep_for(20ms);
  }
}

}  // namespace baton::tcp
