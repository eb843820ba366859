#pragma once
/// Trace files: what Communicator::stop_recording, `--trace` and BATON_TRACE leave behind.

#include <span>
#include <string>
#include <vector>

#include "baton/timeline.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// A recording as it was read.
struct Trace {
  Timeline timeline;                ///< of what is whole
  std::vector<std::string> damage;  ///< a sentence for each thing that was lost; empty: none
  std::vector<int> incomplete =
      {};  ///< ranks whose part is damaged or not there, in ascending order
};

/// Reads a trace: one file, or the parts that ranks wrote each for itself. Times are on rank 0's
/// clock. Throws Error(invalid_argument) where a file cannot be read, is no trace or one of another
/// version, where parts are of different numbers of ranks or two of one rank, or where a clock was
/// not compared with rank 0's before and after the recording, unless `force`.
Trace read_trace(std::span<const std::string> files, bool force = false);

}  // namespace baton
#pragma GCC visibility pop
