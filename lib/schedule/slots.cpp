#include "slots.hpp"

#include <algorithm>

namespace baton::scheduling {
namespace {

bool touches_slot(const Schedule& schedule, const Step& step) {
  for (int k = 0; k < operands(step.kind); ++k) {
    for (const Region& region : schedule.operand(step, k)) {
      if (region.buffer == Buffer::slot) return true;
    }
  }
  return false;
}

}  // namespace

Regions slice(std::span<const Region> regions, std::int64_t first, std::int64_t length) {
  Regions out;
  for (const Region& region : regions) {
    const std::int64_t here = std::min(length, region.length() - first);
    if (here > 0) {
      append_slice(region, first, here, out);
      length -= here;
      first = 0;
    } else {
      first -= region.length();
    }
    if (length == 0) break;
  }
  return out;
}

Schedule::Header without_slots(Schedule::Header header) {
  header.slots = 0;
  return header;
}

bool writes_slot(const Schedule& schedule, const Step& step) {
  return step.kind != StepKind::send && step.kind != StepKind::compute &&
         schedule.operand(step, 0)[0].buffer == Buffer::slot;
}

bool slots_in_pairs(const Schedule& schedule) {
  const auto steps = schedule.steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!touches_slot(schedule, steps[i])) continue;
    if (!writes_slot(schedule, steps[i]) || i + 1 == steps.size()) return false;
    const auto filled = schedule.operand(steps[i], 0);
    const Step& next = steps[++i];
    int emptied = 0;
    for (int k = next.kind == StepKind::send ? 0 : 1; k < operands(next.kind); ++k) {
      emptied += std::ranges::equal(schedule.operand(next, k), filled) ? 1 : 0;
    }
    if (filled.size() != 1 || emptied != 1 || writes_slot(schedule, next)) return false;
  }
  return true;
}

Schedule with_slots_in_scratch(const Schedule& schedule) {
  Regions regions(schedule.regions().begin(), schedule.regions().end());
  for (Region& region : regions) {
    if (region.buffer != Buffer::slot) continue;
    region.buffer = Buffer::scratch;
    region.offset += schedule.header().scratch;
  }
  Schedule::Header header = without_slots(schedule.header());
  header.scratch += schedule.header().slots;
  return Schedule(header, {schedule.steps().begin(), schedule.steps().end()}, std::move(regions),
                  schedule.dependencies(),
                  {schedule.computations().begin(), schedule.computations().end()});
}

}  // namespace baton::scheduling
