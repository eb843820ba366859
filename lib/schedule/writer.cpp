#include "writer.hpp"

#include <algorithm>

namespace baton::scheduling {

void ScheduleWriter::append(Step step, std::span<const Region> first,
                            std::span<const Region> second, std::span<const Region> third) {
  step.first = static_cast<std::uint32_t>(regions_.size());
  const std::span<const Region> lists[] = {first, second, third};
  for (std::size_t k = 0; k < 3; ++k) {
    std::uint32_t parts = 0;
    for (const Region& region : lists[k]) {
      if (region.empty()) continue;
      regions_.push_back(region);
      ++parts;
    }
    step.parts[k] = parts;
  }
  if (step.parts[0] > 0 || step.kind == StepKind::compute) steps_.push_back(step);
}

std::int32_t ScheduleWriter::computation(const Computation& computation) {
  // Neighbours are often equal; build() finds all others that are.
  if (computations_.empty() || !(computations_.back() == computation))
    computations_.push_back(computation);
  return static_cast<std::int32_t>(computations_.size()) - 1;
}

// Until build(), when the slots' sizes are known, a slot's offset says which one it is.
Region ScheduleWriter::slot(int lane, StepKind direction, std::int64_t length) {
  const std::size_t index = ring_of(lane, direction);
  if (index >= rings_.size()) rings_.resize(index + 1);
  Ring& ring = rings_[index];
  ring.longest = std::max(ring.longest, length);
  const std::int64_t turn = ring.used++ % slots_per_lane;
  return contiguous(Buffer::slot, static_cast<std::int64_t>(index) * slots_per_lane + turn, length);
}

Schedule ScheduleWriter::build() {
  std::vector<std::int64_t> place(rings_.size() * slots_per_lane);
  std::int64_t end = 0;
  for (std::size_t i = 0; i < place.size(); ++i) {
    const Ring& ring = rings_[i / slots_per_lane];
    place[i] = end;
    if (static_cast<std::int64_t>(i % slots_per_lane) < ring.used) end += ring.longest;
  }
  for (Region& region : regions_) {
    if (region.buffer == Buffer::slot)
      region.offset = place[static_cast<std::size_t>(region.offset)];
  }
  header_.slots = end;
  return Schedule(std::move(header_), std::move(steps_), std::move(regions_),
                  std::move(computations_));
}

}  // namespace baton::scheduling
