#include <algorithm>
#include <cassert>
#include <cstddef>

#include "baton/schedule/builder.hpp"
#include "baton/schedule/passes.hpp"
#include "builder_state.hpp"
#include "slots.hpp"

namespace baton {

using namespace scheduling;

namespace {

/// Appends where `region` lies, a region of a buffer whose packed order is that of `buffer`.
void append_placed(const Regions& buffer, const Region& region, Regions& out) {
  for (std::int64_t i = 0; i < region.count; ++i) {
    const Regions parts = slice(buffer, region.offset + i * region.stride, region.block);
    out.insert(out.end(), parts.begin(), parts.end());
  }
}

}  // namespace

void ScheduleBuilder::embed(const Schedule& part, std::span<const int> ranks, const Regions& input,
                            const Regions& output) {
  const bool program = state_->p.collective == Collective::program;
  if (program ? part.header().slots > 0 : !slots_in_pairs(part))
    return embed(with_slots_in_scratch(part), ranks, input, output);
  State& state = *state_;
  assert(ranks.size() == static_cast<std::size_t>(part.size()));
  assert(ranks[static_cast<std::size_t>(part.rank())] == state.p.rank);
  assert(part.header().input == 0 || length_of(input) == part.header().input);
  assert(part.header().output == 0 || length_of(output) == part.header().output);
  const Region scratch = state.scratch(part.header().scratch);
  Region slot;
  const auto placed = [&](const Step& step, int k) {
    Regions regions;
    for (Region region : part.operand(step, k)) {
      if (region.buffer == Buffer::input) {
        append_placed(input, region, regions);
      } else if (region.buffer == Buffer::output) {
        append_placed(output, region, regions);
      } else if (region.buffer == Buffer::slot) {
        regions.push_back(slot);
      } else {
        region.offset += scratch.offset;
        regions.push_back(region);
      }
    }
    return regions;
  };

  for (Step step : part.steps()) {
    const int lane = step.lane + state.lane;
    assert(lane < ScheduleWriter::lanes);
    step.lane = static_cast<std::uint8_t>(lane);
    if (writes_slot(part, step)) {
      const StepKind direction = step.kind == StepKind::recv ? StepKind::recv : StepKind::send;
      slot = state.writer.slot(step.lane, direction, part.length(step));
    }
    const Regions first = placed(step, 0);
    const Regions second = operands(step.kind) > 1 ? placed(step, 1) : Regions();
    const Regions third = operands(step.kind) > 2 ? placed(step, 2) : Regions();
    step.round += state.round;
    if (step.message()) step.peer = ranks[static_cast<std::size_t>(step.peer)];
    switch (step.kind) {
      case StepKind::send:
        state.writer.append(step, state.read(first));
        break;
      case StepKind::recv:
        state.writer.append(step, state.write(first));
        break;
      case StepKind::fold: {
        const Regions left = state.read(second), right = state.read(third);
        state.writer.append(step, state.write(first), left, right);
        break;
      }
      case StepKind::copy: {
        const Regions from = state.read(second), to = state.write(first);
        if (to != from) state.writer.append(step, to, from);
        break;
      }
      case StepKind::divide:
        for (const Region& region : first) {
          if (region.buffer == Buffer::work) state.fill(region);
        }
        state.writer.append(step, state.read(first));
        break;
      case StepKind::compute: {
        step.peer = state.writer.computation(part.computation(step));
        const Regions read = state.read(second);
        state.writer.append(step, state.write(first), read);
        break;
      }
    }
  }
  state.round += part.rounds();
}

}  // namespace baton
