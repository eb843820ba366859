#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "baton/timeline.hpp"
#include "baton/trace.hpp"

namespace baton::cli::timeline {

/// A collective whose timeline is wanted.
struct TimedCollective {
  TimedOperation operation;            ///< bytes -1: those of the largest buffer
  std::shared_ptr<const Hosts> hosts;  ///< null: one
};

/// Its steps with rounds in place of times.
Timeline rounds_of(const TimedCollective& collective);
/// A simulation on a network: a file, or the name of one that comes with the program. Throws
/// Error(invalid_argument).
Timeline predicted(const TimedCollective& collective, const std::string& network);
/// The prediction of a recording's only operation `collective`, on the recording's ranks and hosts.
Timeline predicted_beside(const Timeline& recording, const TimedCollective& collective,
                          const std::string& network);
/// Trace files, as read_trace() reads them; says on standard error what was lost.
Trace recorded(const std::vector<std::string>& files, bool force);

/// Whether events of a rank were lost.
bool lacks_events(const Trace& trace, int rank);
/// The operation that stands for a recording: of those that are like the last (name, algorithm,
/// bytes, ranks) and whole, the one of median duration. Throws Error(invalid_argument) where
/// nothing was recorded.
std::uint32_t typical_operation(const Trace& trace);
/// A line for each kind of operation: which ones, how often, how long; and what is known of the
/// recording's quality.
std::string contents(const Trace& trace);

/// For each kind of collective, the ranks that entered last: how often, and how long after all
/// others on average.
std::string stragglers(const Trace& trace);

}  // namespace baton::cli::timeline
