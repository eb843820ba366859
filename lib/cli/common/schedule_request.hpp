#pragma once

#include <cstdint>
#include <vector>

#include "baton/schedule.hpp"
#include "collective_options.hpp"

namespace baton::cli {

/// The schedules that a command line asks for.
struct ScheduleRequest {
  /// Without a collective: those of the file `data.schedule`. Without an algorithm: the reference.
  CollectiveOptions data;
  std::int64_t segment = 0;  ///< elements; 0: not cut; data.segment is not read
  bool fused = false;        ///< messages are put in fused groups
  int window = 0;            ///< of a fused group: messages of one channel; 0: any number
};

/// The schedules of all ranks. Throws Error(invalid_argument), such as for what does not exist.
std::vector<Schedule> schedules_of(const ScheduleRequest& request);

}  // namespace baton::cli
