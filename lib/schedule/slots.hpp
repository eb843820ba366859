#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "baton/schedule/step.hpp"

namespace baton::scheduling {

/// The most elements of a buffer. Above it, sums of a schedule's lengths might not fit 64 bits.
inline constexpr std::int64_t most_elements = std::int64_t{1} << 48;
/// The most ns of a computation: the simulator doubles it.
inline constexpr std::int64_t most_ns = std::numeric_limits<std::int64_t>::max() / 2;

/// Elements of a list of regions.
inline std::int64_t length_of(std::span<const Region> regions) {
  std::int64_t length = 0;
  for (const Region& region : regions) length += region.length();
  return length;
}

/// Elements [first, first + length) of a list's packed order, at most to its end.
Regions slice(std::span<const Region> regions, std::int64_t first, std::int64_t length);

/// The header of a schedule whose slots are handed out anew.
Schedule::Header without_slots(Schedule::Header header);

/// Whether the step fills a slot.
bool writes_slot(const Schedule& schedule, const Step& step);

/// The same schedule with its slots in scratch: for schedules from elsewhere, which may use slots
/// in their own way.
Schedule with_slots_in_scratch(const Schedule& schedule);

}  // namespace baton::scheduling
