#pragma once
/// Runs schedules in fused groups over any transport, as fused() defines them.

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "baton/memory.hpp"
#include "baton/schedule.hpp"
#include "baton/transport.hpp"

namespace support {

/// One rank's run of a schedule whose messages are contiguous, on f32 and their sum. Every message
/// has the same tag; a fused group is posted as a whole and waited for as a whole.
class FusedRun {
 public:
  /// Buffers are as long as the schedule's header says.
  FusedRun(baton::Transport& transport, const baton::Schedule& schedule, std::vector<float>& input,
           std::vector<float>& output)
      : transport_(transport),
        schedule_(schedule),
        input_(input),
        output_(output),
        scratch_(static_cast<std::size_t>(schedule.header().scratch)),
        slots_(static_cast<std::size_t>(schedule.header().slots)) {}

  void run() {
    const auto steps = schedule_.steps();
    for (std::size_t i = 0; i < steps.size();) {
      std::size_t end = i;
      while (end < steps.size() && steps[end].message() && steps[end].round == steps[i].round)
        ++end;
      if (end > i) {
        exchange(steps.subspan(i, end - i));
        i = end;
      } else {
        compute(steps[i++]);
      }
    }
  }

 private:
  void exchange(std::span<const baton::Step> group) {
    std::vector<baton::Message> messages(group.size());
    for (std::size_t i = 0; i < group.size(); ++i) {
      const auto regions = schedule_.operand(group[i], 0);
      REQUIRE((regions.size() == 1 && regions[0].contiguous()));
      float* data = buffer(regions[0].buffer).data() + regions[0].offset;
      const std::size_t bytes = static_cast<std::size_t>(regions[0].length()) * sizeof(float);
      if (group[i].kind == baton::StepKind::send) {
        transport_.isend(group[i].peer, 0, data, bytes, messages[i]);
      } else {
        transport_.irecv(group[i].peer, 0, data, bytes, messages[i]);
      }
    }
    std::vector<bool> complete(group.size(), false);
    for (std::size_t left = group.size(); left > 0;) {
      const std::size_t before = left;
      for (std::size_t i = 0; i < group.size(); ++i) {
        std::size_t bytes = 0;
        if (complete[i] || !transport_.test(messages[i], bytes)) continue;
        CHECK(bytes == static_cast<std::size_t>(schedule_.length(group[i])) * sizeof(float));
        complete[i] = true;
        --left;
      }
      if (left == before) transport_.idle(std::chrono::microseconds(200));
    }
  }

  void compute(const baton::Step& step) {
    using baton::StepKind, baton::Datatype;
    const auto count = static_cast<std::size_t>(schedule_.length(step));
    std::vector<float> result = gathered(step, step.kind == StepKind::divide ? 0 : 1);
    if (step.kind == StepKind::fold) {
      baton::host::fold(baton::OpKind::sum, Datatype::f32)(result.data(), result.data(),
                                                           gathered(step, 2).data(), count);
    } else if (step.kind == StepKind::divide) {
      baton::host::divide(Datatype::f32)(result.data(), count, schedule_.size());
    }
    std::size_t next = 0;
    for_elements(step, 0, [&](float& element) { element = result[next++]; });
  }
  std::vector<float> gathered(const baton::Step& step, int operand) {
    std::vector<float> elements;
    for_elements(step, operand, [&](float element) { elements.push_back(element); });
    return elements;
  }
  template <class Visit>
  void for_elements(const baton::Step& step, int operand, const Visit& visit) {
    for (const baton::Region& r : schedule_.operand(step, operand)) {
      for (std::int64_t i = 0; i < r.length(); ++i) {
        visit(buffer(
            r.buffer)[static_cast<std::size_t>(r.offset + i / r.block * r.stride + i % r.block)]);
      }
    }
  }
  std::vector<float>& buffer(baton::Buffer buffer) {
    switch (buffer) {
      case baton::Buffer::input:
        return input_;
      case baton::Buffer::output:
        return output_;
      case baton::Buffer::scratch:
        return scratch_;
      default:
        return slots_;
    }
  }

  baton::Transport& transport_;
  const baton::Schedule& schedule_;
  std::vector<float>&input_, &output_;
  std::vector<float> scratch_, slots_;
};

}  // namespace support
