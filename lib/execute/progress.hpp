#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "baton/transport.hpp"

namespace baton::execute {

/// Who is at a communicator: nobody, a call, or another communicator's call that advances its
/// operations meanwhile. A call finds an advance out quickly and waits for its end; two calls at
/// once are the caller's mistake.
class UseFlag {
 public:
  /// `concurrent`: whether several threads may come at once, each to its own communicator. If not,
  /// two at once are noticed unless they come within the same few nanoseconds.
  explicit UseFlag(bool concurrent = true) : concurrent_(concurrent) {}

  /// For a call: false if another call is at it, also one further up in this thread.
  bool enter() {
    if (!concurrent_) return take(Use::call);
    Use found = Use::none;
    while (!use_.compare_exchange_weak(found, Use::call, std::memory_order_acquire)) {
      if (found == Use::call) return false;
      if (found == Use::advance && advancer_.load() == std::this_thread::get_id()) return false;
      if (found == Use::advance) std::this_thread::yield();
      found = Use::none;
    }
    return true;
  }
  /// For advancing: false if anybody is at it.
  bool try_advance() {
    if (!concurrent_) return take(Use::advance);
    Use found = Use::none;
    if (!use_.compare_exchange_strong(found, Use::advance, std::memory_order_acquire)) return false;
    advancer_.store(std::this_thread::get_id());
    return true;
  }
  void leave() {
    // Before the next one advances, who sets it a moment after it takes the flag.
    advancer_.store({}, std::memory_order_relaxed);
    use_.store(Use::none, std::memory_order_release);
  }

 private:
  enum class Use : std::uint8_t { none, call, advance };
  bool take(Use use) {
    if (use_.load(std::memory_order_acquire) != Use::none) return false;
    use_.store(use, std::memory_order_relaxed);
    return true;
  }
  const bool concurrent_;
  std::atomic<Use> use_{Use::none};
  std::atomic<std::thread::id> advancer_{};  // none while nobody is, or a moment longer
};

/// Something under way that can be advanced without waiting.
class Advancing {
 public:
  virtual ~Advancing() = default;
  /// Advances it, unless another thread is at it; errors are kept for whoever waits for it. `held`
  /// is the flag of the communicator that the calling thread uses already. Whether it got further.
  virtual bool advance(const UseFlag* held) noexcept = 0;
};

/// The operations under way on a communicator and on all that were split from it. Whoever waits for
/// one advances the others too, since its peers may be waiting for those. For any thread.
class ProgressList {
 public:
  void add(Advancing* operation) {
    const std::lock_guard lock(mutex_);
    operations_.push_back(operation);
    count_.store(operations_.size(), std::memory_order_relaxed);
  }
  void remove(Advancing* operation) {
    const std::lock_guard lock(mutex_);
    std::erase(operations_, operation);
    count_.store(operations_.size(), std::memory_order_relaxed);
  }
  /// Whether there are none, as far as this thread knows.
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }
  /// Advances all; returns at once if another thread does so already. Whether any got further.
  bool advance(const UseFlag* held) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    bool further = false;
    for (Advancing* operation : operations_) further |= operation->advance(held);
    return further;
  }

 private:
  std::mutex mutex_;
  std::vector<Advancing*> operations_;
  std::atomic<std::size_t> count_{0};
};

/// How to wait: spin briefly, then leave the core to others, and notice when the time is over.
class Waiting {
 public:
  Waiting(Transport& transport, std::chrono::milliseconds timeout)
      : transport_(transport), timeout_(timeout) {}

  /// To be called after each attempt that completed nothing. Returns false when `timeout` has
  /// passed since the last progress.
  bool again() {
    if (++attempts_ < spins) return true;
    if (timeout_.count() > 0) {
      const auto now = std::chrono::steady_clock::now();
      if (attempts_ == spins) {
        deadline_ = now + timeout_;
      } else if (now > deadline_) {
        return false;
      }
    }
    transport_.idle(std::chrono::microseconds(200));
    return true;
  }
  /// To be called after progress.
  void progressed() { attempts_ = 0; }
  bool spinning() const { return attempts_ < spins; }

 private:
  static constexpr std::uint32_t spins = 256;
  Transport& transport_;
  std::chrono::milliseconds timeout_;
  std::chrono::steady_clock::time_point deadline_;
  std::uint32_t attempts_ = 0;
};

}  // namespace baton::execute
