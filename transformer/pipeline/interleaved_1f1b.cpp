/// Interleaved 1F1B: stage s lies on rank s mod p, so each rank has v stages of 1 / v the size, and
/// the pipeline fills v times as fast. A rank computes p micro-batches of a stage, then the same
/// ones of its next stage.
///
/// Bubble    (p - 1) / (v m + p - 1).
/// Peak      min(v m, 2 (p - r - 1) + (v - 1) p + 1) pairs of stage and micro-batch on rank r.
/// Messages  2 m (v p - 1); none on one rank.
/// Domain    any p >= 1 and v >= 1; m a multiple of p.
/// Source    Narayanan et al., Efficient large-scale language model training on GPU clusters using
///           Megatron-LM (2021), section 2.2.

#include <fmt/core.h>

#include "algorithms.hpp"

namespace baton::transformer::pipeline {
namespace {

/// Forward actions before the first backward of a rank, less the one that the first pair has.
int warm_up(const PipelineProblem& p, int rank) {
  return std::min(p.micro_batches * p.stages_per_rank,
                  2 * (p.ranks - rank - 1) + (p.stages_per_rank - 1) * p.ranks);
}

/// The k-th action of one direction: p micro-batches on each of the rank's stages in turn.
PipelineAction action(PipelineWork work, const PipelineProblem& p, int rank, int k) {
  const int turn = p.ranks * p.stages_per_rank;
  int own = k % turn / p.ranks;  // which of the rank's stages
  if (work != PipelineWork::forward) own = p.stages_per_rank - 1 - own;
  return {work, own * p.ranks + rank, k / turn * p.ranks + k % p.ranks};
}

PipelineSchedule generate(const PipelineProblem& p) {
  PipelineSchedule schedule = empty_schedule("interleaved_1f1b", p);
  const int all = p.micro_batches * p.stages_per_rank;
  for (int rank = 0; rank < p.ranks; ++rank) {
    auto& actions = schedule.ranks[static_cast<std::size_t>(rank)];
    const int first = warm_up(p, rank);
    for (int k = 0; k < first; ++k) actions.push_back(action(PipelineWork::forward, p, rank, k));
    for (int k = 0; k < all; ++k) {
      if (first + k < all) actions.push_back(action(PipelineWork::forward, p, rank, first + k));
      actions.push_back(action(PipelineWork::backward, p, rank, k));
    }
  }
  return schedule;
}

PipelineCost cost(const PipelineProblem& p) {
  const int all = p.micro_batches * p.stages_per_rank;
  PipelineCost cost{bubble_of(all, all + p.ranks - 1), {}, boundary_messages(p)};
  for (int rank = 0; rank < p.ranks; ++rank)
    cost.peak.push_back(std::min(all, warm_up(p, rank) + 1));
  return cost;
}

std::string refuses(const PipelineProblem& p) {
  if (p.micro_batches % p.ranks == 0) return {};
  return fmt::format("expected a multiple of {} micro-batches, the number of ranks, found {}",
                     p.ranks, p.micro_batches);
}

}  // namespace

PipelineAlgorithm interleaved_1f1b() {
  return {"interleaved_1f1b",
          generate,
          cost,
          refuses,
          "(p - 1) / (v m + p - 1)",
          "min(v m, 2 (p - r - 1) + (v - 1) p + 1)",
          "2 m (v p - 1)",
          "Narayanan et al., Megatron-LM (2021), section 2.2"};
}

}  // namespace baton::transformer::pipeline
