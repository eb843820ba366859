#pragma once
/// How long a rank still polls a message that it gives up.

#include <chrono>

namespace baton::transport {

/// A message under way may complete within a few polls. Each poll leaves the core, which a thread
/// that computes gives back milliseconds later; so time counts, too.
class LastPolls {
 public:
  /// Whether to poll once more.
  bool again() { return polls_++ == 0 || (polls_ <= at_most && Clock::now() < end_); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int at_most = 100;
  static constexpr std::chrono::milliseconds for_at_most{5};

  int polls_ = 0;
  Clock::time_point end_ = Clock::now() + for_at_most;
};

}  // namespace baton::transport
