#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "json.hpp"
#include "world.hpp"

namespace baton::cli {

/// Runs that fill a sample of `seconds`, at least 1; the same on all ranks. Collective.
int repeats_for(World& world, const std::function<void()>& run, double seconds);
/// The same where `timed_runs(n)` says how long n runs take.
int repeats_for(const std::function<double(int)>& timed_runs, double seconds);

/// The order in which `sides` sides are sampled: round 0 from the first to the last, round 1 back,
/// and so on (A B B A A B …), so that whatever drifts or follows somebody favours none.
std::vector<std::size_t> order_of_round(int round, std::size_t sides);

/// samples[side][round], each by `sample(side)`, which is called in that order.
std::vector<std::vector<double>> alternate(std::size_t sides, int rounds,
                                           const std::function<double(std::size_t)>& sample);

/// Seconds as a list of microseconds.
Json samples_json(const std::vector<double>& seconds);

}  // namespace baton::cli
