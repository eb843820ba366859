#include "timing.hpp"

#include <algorithm>
#include <cmath>

namespace baton::cli::measure {

double timed(World& world, const std::function<void()>& call, int calls) {
  double seconds = 0;
  world.barrier();
  world.together([&] {
    const double begin = now();
    for (int i = 0; i < calls; ++i) call();
    seconds = now() - begin;
  });
  return world.max(seconds);
}

int calls_filling(const TimedCalls& timed_calls, double seconds) {
  timed_calls(1);  // first calls plan and connect
  constexpr double most = 1e7;
  double calls = 1;
  for (;;) {
    const double took = std::max(timed_calls(static_cast<int>(calls)), 1e-9);
    const double enough = std::clamp(std::ceil(calls * seconds / took), 1.0, most);
    // Few calls tell little: the clock and the start together are part of what they took.
    if (took >= seconds / 4 || enough <= calls) return static_cast<int>(enough);
    calls = std::min(enough, 16 * calls);
  }
}

void sample_alone(Timed& one, int warmup, int calls) {
  double once = 0;
  if (warmup > 0) once = one.seconds(warmup) / warmup;
  if (calls == 0) {
    if (warmup == 0) once = one.seconds(1);
    calls = static_cast<int>(std::clamp(0.1 / std::max(once, 1e-9), 2.0, 1000.0));
  }
  one.calls = calls;
  one.sample();
}

void sample_in_turn(const std::vector<Timed*>& all, int rounds,
                    const std::function<void()>& before) {
  for (int round = 0; round < rounds; ++round) {
    before();
    if (round % 2 == 0) {
      for (auto one = all.begin(); one != all.end(); ++one) (*one)->sample();
    } else {
      for (auto one = all.rbegin(); one != all.rend(); ++one) (*one)->sample();
    }
  }
}

}  // namespace baton::cli::measure
