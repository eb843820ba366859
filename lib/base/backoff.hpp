#pragma once

#include <chrono>
#include <thread>

namespace baton::base {

/// Leaves the core to others while a thread polls in a loop: spins first, since an event is often
/// nearer than a system call, then yields, then sleeps.
class Backoff {
 public:
  /// Fruitless polls before the first yield, before the first sleep, and the length of a sleep.
  /// With `yields` = `never`, it never sleeps.
  struct Limits {
    int spins = 256, yields = 4096;
    std::chrono::microseconds nap{20};
  };
  static constexpr int never = -1;

  /// For a rank that polls an MPI library; `crowded`: its machine has more ranks than cores, which
  /// come to their turn sooner if those who wait sleep. By measurement.
  static Backoff of_rank(bool crowded) {
    if (crowded) return Backoff({.spins = 8, .yields = 64, .nap = std::chrono::microseconds(30)});
    return Backoff({.spins = 1000, .yields = never});
  }

  Backoff() = default;
  explicit Backoff(const Limits& limits) : limits_(limits) {}

  /// To be called after a poll that found nothing. Returns after at most `at_most`.
  void wait(std::chrono::microseconds at_most = std::chrono::microseconds::max()) {
    if (++polls_ <= limits_.spins) return;
    if (limits_.yields == never || polls_ <= limits_.yields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(at_most < limits_.nap ? at_most : limits_.nap);
    }
  }
  /// To be called after a poll that found something.
  void reset() { polls_ = 0; }

 private:
  Limits limits_;
  int polls_ = 0;
};

}  // namespace baton::base
