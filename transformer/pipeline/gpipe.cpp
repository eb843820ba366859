/// GPipe: all micro-batches forward, one behind the other, then all backward.
///
/// Bubble    (p - 1) / (m + p - 1).
/// Peak      m micro-batches on each rank.
/// Messages  2 m (p - 1).
/// Domain    any p >= 1 and m >= 1; a stage per rank.
/// Source    Huang et al., GPipe: efficient training of giant neural networks (2019).

#include "algorithms.hpp"

namespace baton::transformer::pipeline {
namespace {

PipelineSchedule generate(const PipelineProblem& p) {
  PipelineSchedule schedule = empty_schedule("gpipe", p);
  for (int rank = 0; rank < p.ranks; ++rank) {
    auto& actions = schedule.ranks[static_cast<std::size_t>(rank)];
    for (int i = 0; i < p.micro_batches; ++i) actions.push_back({PipelineWork::forward, rank, i});
    for (int i = 0; i < p.micro_batches; ++i) actions.push_back({PipelineWork::backward, rank, i});
  }
  return schedule;
}

PipelineCost cost(const PipelineProblem& p) {
  const int m = p.micro_batches;
  return {bubble_of(m, m + p.ranks - 1), std::vector<int>(static_cast<std::size_t>(p.ranks), m),
          boundary_messages(p)};
}

}  // namespace

PipelineAlgorithm gpipe() {
  return {"gpipe",
          generate,
          cost,
          {},
          "(p - 1) / (m + p - 1)",
          "m",
          "2 m (p - 1)",
          "Huang et al., GPipe (2019)"};
}

}  // namespace baton::transformer::pipeline
