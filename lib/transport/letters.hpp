#pragma once
/// Messages before a transport of another kind starts, waited for in bounded time.

#include <fmt/core.h>

#include <chrono>
#include <cstddef>
#include <deque>

#include "baton/error.hpp"
#include "baton/transport.hpp"

namespace baton::transport {

/// A message under way, with tag 0; the destructor cancels it.
class Letter {
 public:
  explicit Letter(Transport& host) : host_(host) {}
  ~Letter() {
    if (open_) host_.cancel(message_);
  }
  Letter(const Letter&) = delete;
  Letter& operator=(const Letter&) = delete;

  template <class Part>
  void send(int to, const Part& part) {
    host_.isend(to, 0, &part, sizeof part, message_);
    peer_ = to, bytes_ = sizeof part, open_ = true;
  }
  template <class Part>
  void receive(int from, Part& part) {
    host_.irecv(from, 0, &part, sizeof part, message_);
    peer_ = from, bytes_ = sizeof part, open_ = true;
  }
  /// The other rank.
  int peer() const { return peer_; }
  bool arrived() {
    if (!open_) return true;
    std::size_t found = 0;
    open_ = false;  // even if test() throws, the message is released
    open_ = !host_.test(message_, found);
    if (!open_ && found != bytes_)
      throw Error(
          ErrorCode::truncated,
          fmt::format("expected {} bytes of rank {} to start, found {}", bytes_, peer_, found));
    return !open_;
  }

 private:
  Transport& host_;
  Message message_;
  int peer_ = -1;
  std::size_t bytes_ = 0;
  bool open_ = false;
};

/// True if all arrive within the limit; 0 is no limit.
inline bool wait(Transport& host, std::deque<Letter>& letters, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  for (;;) {
    bool all = true;
    for (Letter& letter : letters) all &= letter.arrived();
    if (all) return true;
    if (limit.count() > 0 && std::chrono::steady_clock::now() > until) return false;
    host.idle(std::chrono::microseconds(200));
  }
}

}  // namespace baton::transport
