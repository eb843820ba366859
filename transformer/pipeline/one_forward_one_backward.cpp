/// 1F1B: as many micro-batches forward as there are stages from here to the end, then one backward
/// and one forward in turn, so that activations are freed as early as possible.
///
/// Bubble    (p - 1) / (m + p - 1), as GPipe: the first micro-batch still passes p - 1 other ranks
///           forward before the last rank works, and the last one p - 1 ranks backward.
/// Peak      min(m, p - r) micro-batches on rank r.
/// Messages  2 m (p - 1).
/// Domain    any p >= 1 and m >= 1; a stage per rank.
/// Source    Narayanan et al., PipeDream (2019), with a flush after each step: Narayanan et al.,
///           Memory-efficient pipeline-parallel DNN training (2021).

#include "algorithms.hpp"

namespace baton::transformer::pipeline {
namespace {

PipelineSchedule generate(const PipelineProblem& p) {
  PipelineSchedule schedule = empty_schedule("1f1b", p);
  for (int rank = 0; rank < p.ranks; ++rank) {
    auto& actions = schedule.ranks[static_cast<std::size_t>(rank)];
    const int first = std::min(p.micro_batches, p.ranks - rank);
    for (int i = 0; i < first; ++i) actions.push_back({PipelineWork::forward, rank, i});
    for (int i = 0; i < p.micro_batches; ++i) {
      actions.push_back({PipelineWork::backward, rank, i});
      if (first + i < p.micro_batches) actions.push_back({PipelineWork::forward, rank, first + i});
    }
  }
  return schedule;
}

PipelineCost cost(const PipelineProblem& p) {
  PipelineCost cost{
      bubble_of(p.micro_batches, p.micro_batches + p.ranks - 1), {}, boundary_messages(p)};
  for (int rank = 0; rank < p.ranks; ++rank)
    cost.peak.push_back(std::min(p.micro_batches, p.ranks - rank));
  return cost;
}

}  // namespace

PipelineAlgorithm one_forward_one_backward() {
  return {"1f1b",
          generate,
          cost,
          {},
          "(p - 1) / (m + p - 1)",
          "min(m, p - r)",
          "2 m (p - 1)",
          "Narayanan et al., Memory-efficient pipeline-parallel DNN training (2021)"};
}

}  // namespace baton::transformer::pipeline
