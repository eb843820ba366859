#pragma once
/// The messages of a pipeline schedule, between the actions of a rank.

#include <cstdint>
#include <vector>

#include "schedule.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Kinds of steps.
enum class PipelineStepKind : std::uint8_t { compute, send, recv };

/// An action, or a message that belongs to it.
struct PipelineStep {
  PipelineStepKind kind = PipelineStepKind::compute;
  /// The action itself, or the one whose result a message carries: forward of a stage sends its
  /// output to the next stage, backward and backward_input the gradient to the stage before.
  PipelineAction action;
  int peer = -1;  ///< of a message: the other rank
  bool operator==(const PipelineStep&) const = default;
};

/// The steps of one rank: its actions in order, each behind the receives of messages that it needs,
/// and before the send of its result. Activations, and gradients, of one sender are received in the
/// order in which they are sent. The schedule must be proved (verify()).
std::vector<PipelineStep> steps_of(const PipelineSchedule& schedule, int rank);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
