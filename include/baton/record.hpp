#pragma once
/// Computations in recordings: what a rank does between its messages.

#include <cstdint>

#include "baton/export.hpp"
#include "baton/schedule/computation.hpp"

namespace BATON_API baton {

/// Whether this thread has begun a recording (Communicator::start_recording(), Options::trace) that
/// goes on: whether record_computation() has an effect.
bool records_computations();

/// Adds a computation to the recording that this thread has begun last; without one that goes on it
/// does nothing. Times are nanoseconds of std::chrono::steady_clock; `what.ns` has no effect.
/// Computations of one rank follow each other. An event of the recording for each.
void record_computation(const Computation& what, std::int64_t begin, std::int64_t end);

}  // namespace baton
