#include "clock.hpp"

#include <chrono>

namespace baton::cli {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double timed(World& world, const std::function<void()>& run, int runs) {
  double seconds = 0;
  world.barrier();
  world.together([&] {
    const double begin = now();
    for (int i = 0; i < runs; ++i) run();
    seconds = now() - begin;
  });
  return world.max(seconds);
}

}  // namespace baton::cli
