#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "baton/timeline.hpp"

namespace baton::cli::timeline {

/// A collective whose timeline is wanted.
struct TimedCollective {
  std::shared_ptr<const std::vector<Schedule>> schedules;
  std::shared_ptr<const Hosts> hosts;  ///< null: one
  std::string type = "f32", op;
  std::size_t element_bytes = 4;
  std::int64_t segment = 0;  ///< bytes; 0: not cut
  std::int64_t bytes = -1;   ///< of the whole vector; -1: of the largest buffer
};

/// Its steps with rounds in place of times.
Timeline rounds_of(const TimedCollective& collective);
/// A simulation on a network: a file, or the name of one that comes with the program. Throws
/// Error(invalid_argument).
Timeline predicted(const TimedCollective& collective, const std::string& network);
/// Trace files, as read_trace() reads them; says on standard error what was lost.
Timeline recorded(const std::vector<std::string>& files, bool force);

/// The operation that stands for a recording: of those that are like the last (name, algorithm,
/// bytes, ranks) and whole, the one of median duration. Throws Error(invalid_argument) where
/// nothing was recorded.
std::uint32_t typical_operation(const Timeline& timeline);
/// A line for each kind of operation: which ones, how often, how long; and what is known of the
/// recording's quality.
std::string contents(const Timeline& timeline);

}  // namespace baton::cli::timeline
