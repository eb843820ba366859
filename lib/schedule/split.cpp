#include <algorithm>

#include "baton/schedule/passes.hpp"

namespace baton {
namespace {

/// Elements of the region's packed order that lie below `offset` in the buffer.
std::int64_t elements_below(const Region& region, std::int64_t offset) {
  if (offset <= region.offset) return 0;
  const std::int64_t distance = offset - region.offset;
  if (region.contiguous()) return std::min(distance, region.block);
  const std::int64_t blocks = distance / region.stride;
  if (blocks >= region.count) return region.length();
  return blocks * region.block + std::min(distance % region.stride, region.block);
}

void append_split(const Region& region, std::span<const std::int64_t> offsets, Regions& out) {
  std::int64_t done = 0;
  for (auto at = std::upper_bound(offsets.begin(), offsets.end(), region.offset);
       at != offsets.end() && *at < region.end(); ++at) {
    const std::int64_t below = elements_below(region, *at);
    append_slice(region, done, below - done, out);
    done = below;
  }
  append_slice(region, done, region.length() - done, out);
}

}  // namespace

Schedule split_at(const Schedule& schedule, std::span<const std::int64_t> input_offsets,
                  std::span<const std::int64_t> output_offsets) {
  std::vector<Step> steps;
  Regions regions;
  steps.reserve(schedule.steps().size());
  for (const Step& step : schedule.steps()) {
    Step cut = step;
    cut.first = static_cast<std::uint32_t>(regions.size());
    for (int k = 0; k < operands(step.kind); ++k) {
      const std::size_t before = regions.size();
      for (const Region& region : schedule.operand(step, k)) {
        if (region.buffer == Buffer::input) {
          append_split(region, input_offsets, regions);
        } else if (region.buffer == Buffer::output) {
          append_split(region, output_offsets, regions);
        } else {
          regions.push_back(region);
        }
      }
      cut.parts[k] = static_cast<std::uint32_t>(regions.size() - before);
    }
    steps.push_back(cut);
  }
  return Schedule(schedule.header(), std::move(steps), std::move(regions), schedule.dependencies(),
                  {schedule.computations().begin(), schedule.computations().end()},
                  schedule.assumed_overlaps());
}

}  // namespace baton
