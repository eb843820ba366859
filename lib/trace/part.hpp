#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/timeline.hpp"

namespace baton::tracing {

/// A clock against rank 0's: rank 0's time = local + offset, give or take `error`. All in ns.
struct ClockSample {
  std::int64_t local = 0, offset = 0, error = 0;
  bool operator==(const ClockSample&) const = default;
};

/// The recording of one rank, in times of its own clock.
struct Part {
  struct Group {
    std::vector<int> members;  ///< ranks of the timeline
    std::uint32_t number = 0;  ///< among the groups of the same members
    auto operator<=>(const Group&) const = default;
  };
  struct Plan {
    std::uint32_t group = 0;  ///< in `groups`
    TimedOperation what;      ///< without ranks and schedules
    Schedule schedule;
  };
  struct Record {
    std::int64_t posted, start, end;
    std::uint32_t plan;      ///< in `plans`
    std::uint32_t sequence;  ///< of the call in its group
    std::uint32_t step;
    bool operator==(const Record&) const = default;
  };

  int rank = 0, ranks = 1;
  int host = 0;
  std::string host_name;
  int clock = 0;  ///< the lowest rank with the same clock
  /// For the lowest rank of each clock except rank 0's: before and after the recording.
  std::optional<ClockSample> before, after;
  std::uint64_t dropped = 0;  ///< events that found no room
  std::vector<Group> groups;
  std::vector<Plan> plans;
  std::vector<Record> records;
};

/// A program of one rank that only computes this: the schedule of a recorded computation.
Schedule schedule_of(const Computation& computation);

/// The first bytes of a trace file. README.md describes the format.
std::string file_head();
/// One rank's part as bytes, to follow the head.
std::string written(const Part& part);

struct ReadParts {
  std::vector<Part> parts;
  std::vector<std::string> damage;  ///< a sentence for each loss
};
/// All undamaged parts of a file. Throws Error(invalid_argument) if it is no trace, or of another
/// version. Sentences call the file `origin`.
ReadParts read_parts(std::string_view bytes, const std::string& origin);

/// Merges the parts of all ranks, or of some, on rank 0's clock. Throws Error(invalid_argument) if
/// they are not of one recording. Also throws if a clock was not compared with rank 0's before and
/// after the recording, unless `force`: then one comparison suffices, and without any, times are
/// unchanged.
Timeline merged(std::vector<Part> parts, bool force);

}  // namespace baton::tracing
