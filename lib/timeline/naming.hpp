#pragma once
/// Names of messages and other steps, by the data that they carry.

#include <cstdint>
#include <span>
#include <vector>

#include "baton/timeline.hpp"

namespace baton::timing {

/// Places of the names of steps, rank after rank in program order.
struct StepNames {
  std::vector<std::uint32_t> of;     ///< of each step; empty: there are too many steps to name
  std::vector<std::uint32_t> begin;  ///< of each rank, in `of`
};

/// Appends names of all steps to `names`: "c3" (a chunk), "c3.1" (its piece 1, of a segmented
/// schedule), "c2-c5", "c0,c3", "all", "1>4" (of an all_to_all), or "6 chunks" if there are too
/// many to list. A step with unknown data is named by its region. In a program, a computation has
/// its own name, and other steps that of the computation whose result they carry.
StepNames name_steps(std::span<const Schedule> schedules, std::vector<ChunkName>& names);

}  // namespace baton::timing
