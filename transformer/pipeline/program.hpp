#pragma once
/// Pipeline schedules as programs of computations and messages, for the simulator, the verifier
/// and pictures.

#include <cstdint>
#include <functional>
#include <vector>

#include "baton/schedule.hpp"
#include "schedule.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// How long the actions of a pipeline take, and how much they send.
struct PipelineLoad {
  std::function<std::int64_t(const PipelineAction&)> ns;  ///< of the computation
  /// Of the message that carries the action's result: activations behind its stage, or the gradient
  /// before it. Not negative; at 0 elements nothing is sent.
  std::function<std::int64_t(const PipelineAction&)> elements;
};

/// The class, and so the colour, of an action.
ComputationKind computation_kind(PipelineWork work);

/// The computations and messages of one rank. Computations have the actions' names; activations go
/// in lane 0, gradients in lane 1. The schedule must be proved (verify()).
Schedule program_of(const PipelineSchedule& schedule, int rank, const PipelineLoad& load);
/// Of all ranks.
std::vector<Schedule> programs_of(const PipelineSchedule& schedule, const PipelineLoad& load);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
