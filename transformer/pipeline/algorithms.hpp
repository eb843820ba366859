#pragma once
/// The rows of the table of algorithms, one from each file.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schedule.hpp"

namespace baton::transformer::pipeline {

PipelineAlgorithm naive();
PipelineAlgorithm gpipe();
PipelineAlgorithm one_forward_one_backward();
PipelineAlgorithm interleaved_1f1b();
PipelineAlgorithm zb_h1();

/// A schedule without actions, of this name.
PipelineSchedule empty_schedule(std::string name, const PipelineProblem& problem);

/// Messages if neighbouring stages lie on different ranks: each micro-batch's activation and
/// gradient cross each boundary between two stages.
inline std::int64_t boundary_messages(const PipelineProblem& p) {
  return p.ranks == 1 ? 0 : std::int64_t{2} * p.micro_batches * (p.stages() - 1);
}

/// The part of `span` in which a rank that works for `work` waits.
inline double bubble_of(std::int64_t work, std::int64_t span) {
  return static_cast<double>(span - work) / static_cast<double>(span);
}

}  // namespace baton::transformer::pipeline
