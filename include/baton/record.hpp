#pragma once
/// What a program adds to recordings: computations between its messages, and names of its calls.

#include <cstdint>
#include <string>

#include "baton/schedule/computation.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// Whether this thread has begun a recording (Communicator::start_recording(), Options::trace) that
/// goes on: whether record_computation() has an effect.
bool records_computations();

/// Adds a computation to the recording that this thread has begun last; without one that goes on it
/// does nothing. Times are nanoseconds of std::chrono::steady_clock; `what.ns` has no effect.
/// Computations of one rank follow each other. An event of the recording for each.
void record_computation(const Computation& what, std::int64_t begin, std::int64_t end);

/// While it exists, operations and messages that this thread starts are recorded with a name of the
/// program behind their own: "all_reduce (layer 3)". The latest of several names holds. A recording
/// has one more schedule for each name and call, so names say the place, not the step.
class RecordedName {
 public:
  /// Costs nothing where nothing is recorded but the copy of `name`.
  explicit RecordedName(std::string name);
  ~RecordedName();
  RecordedName(const RecordedName&) = delete;
  RecordedName& operator=(const RecordedName&) = delete;

 private:
  std::string name_;
  const std::string* before_;
};

}  // namespace baton
#pragma GCC visibility pop
