#pragma once

#include <functional>

#include "world.hpp"

namespace baton::cli {

/// Seconds of std::chrono::steady_clock.
double now();

/// Seconds that the slowest rank takes for `runs` runs back to back, after a barrier. Collective.
double timed(World& world, const std::function<void()>& run, int runs);

}  // namespace baton::cli
