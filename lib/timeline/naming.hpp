#pragma once
/// Names of messages and other steps, by the data that they carry.

#include <cstdint>
#include <span>
#include <vector>

#include "baton/timeline.hpp"

namespace baton::timing {

/// Names of all steps of all ranks, rank after rank in program order.
struct StepNames {
  std::vector<ChunkName> names;   ///< different ones
  std::vector<std::uint32_t> of;  ///< of each step, in `names`
};

/// Names every step: "c3" (a chunk), "c3.1" (its piece 1, of a segmented schedule), "c2-c5",
/// "c0,c3", "all", "1>4" (of an all_to_all), or "6 chunks" if there are too many to list. A step
/// with unknown data is named by its region.
StepNames names_of(std::span<const Schedule> schedules);

}  // namespace baton::timing
