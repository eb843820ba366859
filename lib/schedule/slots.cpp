#include "slots.hpp"

#include <algorithm>

#include "baton/schedule/passes.hpp"

namespace baton::scheduling {
namespace {

/// The number of operands, from the first-th on, that lie in a slot at least in part.
int operands_in_slots(const Schedule& schedule, const Step& step, int first = 0) {
  int found = 0;
  for (int k = first; k < operands(step.kind); ++k)
    found += std::ranges::any_of(schedule.operand(step, k), [](const Region& region) {
      return region.buffer == Buffer::slot;
    });
  return found;
}

/// Whether the step fills a slot without regard to what any slot held.
bool only_fills_slot(const Schedule& schedule, const Step& step) {
  return writes_slot(schedule, step) && step.kind != StepKind::divide &&
         operands_in_slots(schedule, step, 1) == 0;
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
                  {schedule.computations().begin(), schedule.computations().end()},
                  schedule.assumed_overlaps());
}

}  // namespace baton::scheduling

namespace baton {

bool slots_in_pairs(const Schedule& schedule) {
  const auto steps = schedule.steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (scheduling::operands_in_slots(schedule, steps[i]) == 0) continue;
    if (!scheduling::only_fills_slot(schedule, steps[i]) || i + 1 == steps.size()) return false;
    const auto filled = schedule.operand(steps[i], 0);
    const Step& next = steps[++i];
    int emptied = 0;
    for (int k = next.kind == StepKind::send ? 0 : 1; k < operands(next.kind); ++k) {
      emptied += std::ranges::equal(schedule.operand(next, k), filled) ? 1 : 0;
    }
    if (filled.size() != 1 || emptied != 1 || scheduling::writes_slot(schedule, next) ||
        scheduling::operands_in_slots(schedule, next) != 1)
      return false;
  }
  return true;
}

}  // namespace baton
