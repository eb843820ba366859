#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "baton/schedule/step.hpp"

namespace baton::scheduling {

/// Appends steps to a schedule and hands out slots. What the builder and the passes have in common.
class ScheduleWriter {
 public:
  static constexpr int lanes = 256;
  static constexpr int slots_per_lane = 2;

  explicit ScheduleWriter(Schedule::Header header) : header_(std::move(header)) {}

  Schedule::Header& header() { return header_; }
  std::vector<Step>& steps() { return steps_; }

  /// Appends a step with these operands, whose lengths are equal, or a computation. Other steps on
  /// nothing are dropped.
  void append(Step step, std::span<const Region> first, std::span<const Region> second = {},
              std::span<const Region> third = {});

  /// The number of a computation, for Step::peer.
  std::int32_t computation(const Computation& computation);

  /// The next slot for a message of `length` elements in this lane, received or to be sent. Lanes
  /// and directions have slots of their own, used in turn.
  Region slot(int lane, StepKind direction, std::int64_t length);

  /// Places the slots and infers dependencies. The writer is spent afterwards.
  Schedule build();

 private:
  struct Ring {
    std::int64_t used = 0;
    std::int64_t longest = 0;
  };
  static std::size_t ring_of(int lane, StepKind direction) {
    return static_cast<std::size_t>(2 * lane + (direction == StepKind::send ? 1 : 0));
  }

  Schedule::Header header_;
  std::vector<Step> steps_;
  std::vector<Region> regions_;
  std::vector<Computation> computations_;
  std::vector<Ring> rings_;  // of the lanes up to the largest that has a slot
};

}  // namespace baton::scheduling
