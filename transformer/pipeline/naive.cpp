/// Naive model parallelism: one micro-batch at a time goes through all stages, forward and back.
///
/// Bubble    (p - 1) / p: one rank works, the others wait.
/// Peak      1 micro-batch on each rank.
/// Messages  2 m (p - 1).
/// Domain    any p >= 1 and m >= 1; a stage per rank.
/// Source    The baseline of Huang et al., GPipe (2019), figure 2b.

#include "algorithms.hpp"

namespace baton::transformer::pipeline {
namespace {

PipelineSchedule generate(const PipelineProblem& p) {
  PipelineSchedule schedule = empty_schedule("naive", p);
  for (int rank = 0; rank < p.ranks; ++rank) {
    auto& actions = schedule.ranks[static_cast<std::size_t>(rank)];
    for (int i = 0; i < p.micro_batches; ++i) {
      actions.push_back({PipelineWork::forward, rank, i});
      actions.push_back({PipelineWork::backward, rank, i});
    }
  }
  return schedule;
}

PipelineCost cost(const PipelineProblem& p) {
  return {bubble_of(1, p.ranks), std::vector<int>(static_cast<std::size_t>(p.ranks), 1),
          boundary_messages(p)};
}

}  // namespace

PipelineAlgorithm naive() {
  return {"naive",       generate, cost,          {},
          "(p - 1) / p", "1",      "2 m (p - 1)", "Huang et al., GPipe (2019)"};
}

}  // namespace baton::transformer::pipeline
