/// ZB-H1, the zero-bubble schedule with the memory of 1F1B: backward is cut into the gradient by
/// the input, which the stage before waits for, and the gradient by the weights, which nobody waits
/// for. Rank r does the latter r micro-batches later, so that no rank waits at the end.
///
/// Bubble    (p - 1) / (3 m + p - 1) if m >= p; generally 1 - 3 m / (2 m + p - 1 + max(m, p)).
/// Peak      min(m, p) micro-batches on each rank.
/// Messages  2 m (p - 1).
/// Domain    any p >= 1 and m >= 1; a stage per rank.
/// Source    Qi, Wan, Huang, Lin, Zero bubble pipeline parallelism (2023), section 2.

#include "algorithms.hpp"

namespace baton::transformer::pipeline {
namespace {

PipelineSchedule generate(const PipelineProblem& p) {
  PipelineSchedule schedule = empty_schedule("zb_h1", p);
  const int m = p.micro_batches;
  for (int rank = 0; rank < p.ranks; ++rank) {
    auto& actions = schedule.ranks[static_cast<std::size_t>(rank)];
    const int first = std::min(m, p.ranks - rank);
    for (int i = 0; i < first; ++i) actions.push_back({PipelineWork::forward, rank, i});
    for (int i = 0; i < m + rank; ++i) {
      if (i < m) actions.push_back({PipelineWork::backward_input, rank, i});
      if (i >= rank) actions.push_back({PipelineWork::backward_weight, rank, i - rank});
      if (first + i < m) actions.push_back({PipelineWork::forward, rank, first + i});
    }
  }
  return schedule;
}

PipelineCost cost(const PipelineProblem& p) {
  const int m = p.micro_batches;
  return {bubble_of(3 * m, 2 * m + p.ranks - 1 + std::max(m, p.ranks)),
          std::vector<int>(static_cast<std::size_t>(p.ranks), std::min(m, p.ranks)),
          boundary_messages(p)};
}

}  // namespace

PipelineAlgorithm zb_h1() {
  return {"zb_h1",
          generate,
          cost,
          {},
          "1 - 3 m / (2 m + p - 1 + max(m, p))",
          "min(m, p)",
          "2 m (p - 1)",
          "Qi et al., Zero bubble pipeline parallelism (2023), section 2"};
}

}  // namespace baton::transformer::pipeline
