#pragma once

#include <chrono>
#include <thread>

namespace baton::base {

/// Leaves the core to others while a thread polls. It spins first, since the event often comes
/// sooner than a system call returns; then it yields, then it sleeps.
class Backoff {
 public:
  /// Polls before the first yield, polls before the first sleep, and the length of a sleep. With
  /// `yields` = `never`, the thread never sleeps.
  struct Limits {
    int spins = 256, yields = 4096;
    std::chrono::microseconds nap{20};
  };
  static constexpr int never = -1;

  /// For a rank that polls an MPI library. `crowded`: the machine has more ranks than cores. Then
  /// waiting ranks sleep, so that the others run sooner (measured).
  static Backoff of_rank(bool crowded) {
    if (crowded) return Backoff({.spins = 8, .yields = 64, .nap = std::chrono::microseconds(30)});
    return Backoff({.spins = 1000, .yields = never});
  }

  Backoff() = default;
  explicit Backoff(const Limits& limits) : limits_(limits) {}

  /// Call this after a poll that found nothing. Returns after at most `at_most`.
  void wait(std::chrono::microseconds at_most = std::chrono::microseconds::max()) {
    if (++polls_ <= limits_.spins) return;
    if (limits_.yields == never || polls_ <= limits_.yields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(at_most < limits_.nap ? at_most : limits_.nap);
    }
  }
  /// Call this after a poll that found something.
  void reset() { polls_ = 0; }

 private:
  Limits limits_;
  int polls_ = 0;
};

}  // namespace baton::base
