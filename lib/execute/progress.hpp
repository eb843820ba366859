#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "baton/transport.hpp"
#include "spins.hpp"

namespace baton::execute {

/// Says who uses a communicator: nobody, a call, or another communicator's call that advances the
/// operations here. A call tells an advance to stop early and waits for its end. Two calls at once
/// are the caller's mistake.
class UseFlag {
 public:
  /// `concurrent`: several threads may call at once, each on its own communicator. Otherwise two
  /// calls at once are detected, unless they come within the same few nanoseconds.
  explicit UseFlag(bool concurrent = true) : concurrent_(concurrent) {}

  /// For a call: false if another call uses the communicator, even one of this thread.
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
  /// For advancing: false if anybody uses the communicator.
  bool try_advance() {
    if (!concurrent_) return take(Use::advance);
    Use found = Use::none;
    if (!use_.compare_exchange_strong(found, Use::advance, std::memory_order_acquire)) return false;
    advancer_.store(std::this_thread::get_id());
    return true;
  }
  void leave() {
    // Cleared before the flag is free: the next thread that advances sets it a moment after it
    // takes the flag.
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
  // none while the communicator is free, or a moment longer
  std::atomic<std::thread::id> advancer_{};
};

/// Something under way that can advance without waiting.
class Advancing {
 public:
  virtual ~Advancing() = default;
  /// Advances it, unless another thread does so. Keeps errors for the caller that waits. `held` is
  /// the flag of the communicator that the calling thread already uses. True if there was progress.
  virtual bool advance(const UseFlag* held) noexcept = 0;
};

/// The operations under way on a communicator and its splits. A rank that waits for one advances
/// the others too, since its peers may wait for those. Safe for any thread.
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
  /// Advances all; returns at once if another thread does so already. True if any made progress.
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

/// How to wait: spin briefly, then leave the core to others, and notice a timeout.
class Waiting {
 public:
  /// `spins`: attempts before the first Transport::idle(), the transport's number; 256 at most.
  Waiting(Transport& transport, std::chrono::milliseconds timeout, int spins)
      : transport_(transport), timeout_(timeout), most_spins_(std::clamp(spins, 1, 256)) {}

  /// Call this after each attempt that completed nothing. False if `timeout` has passed since the
  /// last progress.
  bool again() {
    const bool first = spinning();
    if (spins_.again()) return true;
    if (timeout_.count() > 0) {
      const auto now = std::chrono::steady_clock::now();
      if (first) {
        deadline_ = now + timeout_;
      } else if (now > deadline_) {
        return false;
      }
    }
    transport_.idle(std::chrono::microseconds(200));
    return true;
  }
  /// Call this after progress.
  void progressed() { spins_ = Spins(most_spins_); }
  bool spinning() const { return !spins_.over(); }

 private:
  Transport& transport_;
  std::chrono::milliseconds timeout_;
  int most_spins_;
  Spins spins_{most_spins_};
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace baton::execute
