#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "baton/timeline.hpp"

namespace baton::cli {

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
/// A trace file. Throws Error(invalid_argument).
Timeline recorded(const std::string& file);

}  // namespace baton::cli
