#include <algorithm>

#include "baton/schedule/passes.hpp"
#include "slots.hpp"
#include "writer.hpp"

namespace baton {

using namespace scheduling;

namespace {

/// Appends piece [first, first + length) of a step; operands that lie in a slot lie in `slot`.
void append_piece(ScheduleWriter& writer, const Schedule& schedule, const Step& step,
                  std::int64_t first, std::int64_t length, const Region& slot) {
  Regions lists[3];
  for (int k = 0; k < operands(step.kind); ++k) {
    const auto operand = schedule.operand(step, k);
    lists[k] = operand[0].buffer == Buffer::slot ? Regions{slot} : slice(operand, first, length);
  }
  writer.append(step, lists[0], lists[1], lists[2]);
}

/// Appends a computation, which is never cut.
void append_computation(ScheduleWriter& writer, const Schedule& schedule, Step step) {
  const auto written = schedule.operand(step, 0), read = schedule.operand(step, 1);
  step.peer = writer.computation(schedule.computation(step));
  writer.append(step, written, read);
}

}  // namespace

Schedule segmented(const Schedule& schedule, std::int64_t segment) {
  if (segment <= 0) return schedule;
  if (!slots_in_pairs(schedule)) return segmented(with_slots_in_scratch(schedule), segment);
  ScheduleWriter writer(without_slots(schedule.header()));
  const auto steps = schedule.steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.kind == StepKind::compute) {
      append_computation(writer, schedule, step);
      continue;
    }
    // A step that fills a slot and the next one, which empties it, are cut together.
    const bool pair = writes_slot(schedule, step) && i + 1 < steps.size();
    const Step* next = pair ? &steps[++i] : nullptr;
    const std::int64_t length = schedule.length(step);
    for (std::int64_t first = 0; first < length; first += segment) {
      const std::int64_t piece = std::min(segment, length - first);
      Region slot;
      if (pair) {
        slot = writer.slot(step.lane, step.kind == StepKind::recv ? StepKind::recv : StepKind::send,
                           piece);
      }
      append_piece(writer, schedule, step, first, piece, slot);
      if (next) append_piece(writer, schedule, *next, first, piece, slot);
    }
  }
  return writer.build();
}

Schedule packed(const Schedule& schedule) {
  const auto contiguous_message = [&](const Step& step) {
    return !step.message() || (step.parts[0] == 1 && schedule.operand(step, 0)[0].contiguous());
  };
  if (std::all_of(schedule.steps().begin(), schedule.steps().end(), contiguous_message)) {
    return schedule;
  }
  if (!slots_in_pairs(schedule)) return packed(with_slots_in_scratch(schedule));
  ScheduleWriter writer(without_slots(schedule.header()));
  const auto steps = schedule.steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const std::int64_t length = schedule.length(step);
    if (step.kind == StepKind::compute) {
      append_computation(writer, schedule, step);
    } else if (writes_slot(schedule, step) && i + 1 < steps.size()) {
      const Region slot = writer.slot(
          step.lane, step.kind == StepKind::recv ? StepKind::recv : StepKind::send, length);
      append_piece(writer, schedule, step, 0, length, slot);
      append_piece(writer, schedule, steps[++i], 0, length, slot);
    } else if (contiguous_message(step)) {
      append_piece(writer, schedule, step, 0, length, {});
    } else {
      const Region slot = writer.slot(step.lane, step.kind, length);
      Step copy = step;
      copy.kind = StepKind::copy;
      copy.peer = -1;
      const auto regions = schedule.operand(step, 0);
      if (step.kind == StepKind::send) {
        writer.append(copy, std::span(&slot, 1), regions);
        writer.append(step, std::span(&slot, 1));
      } else {
        writer.append(step, std::span(&slot, 1));
        writer.append(copy, regions, std::span(&slot, 1));
      }
    }
  }
  return writer.build();
}

}  // namespace baton
