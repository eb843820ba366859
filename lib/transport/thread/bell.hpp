#pragma once
/// How a rank waits for others without burning the core that they need.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace baton::threads {

/// An event count: rung by those who complete a rank's messages, waited for by the rank. All
/// transports of one rank share a bell, so that a rank wakes whichever group the message is of.
class alignas(64) Bell {
 public:
  /// How often it has rung.
  std::uint32_t rings() const { return rings_.load(std::memory_order_acquire); }
  void ring();
  /// Returns when it has rung more often than `seen`, or after `at_most`. Spins before it blocks
  /// for as long as `spin`.
  void wait(std::uint32_t seen, std::chrono::microseconds at_most, std::chrono::microseconds spin);

 private:
  std::atomic<std::uint32_t> rings_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable rung_;
};

}  // namespace baton::threads
