#pragma once
/// A rank's wait for others, without using the core that they need.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace baton::threads {

/// An event count. Ranks that complete a rank's messages ring it; the rank waits for it. All
/// transports of a rank share one bell, so a message of any group wakes the rank.
class alignas(64) Bell {
 public:
  /// The number of rings so far.
  std::uint32_t rings() const { return rings_.load(std::memory_order_acquire); }
  void ring();
  /// Returns when it has rung more often than `seen`, or after `at_most`. Spins for `spin` before
  /// it blocks.
  void wait(std::uint32_t seen, std::chrono::microseconds at_most, std::chrono::microseconds spin);

 private:
  std::atomic<std::uint32_t> rings_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable rung_;
};

}  // namespace baton::threads
