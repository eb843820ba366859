#include "algorithms.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <utility>

#include "baton/error.hpp"

namespace baton::transformer {
namespace pipeline {

PipelineSchedule empty_schedule(std::string name, const PipelineProblem& problem) {
  PipelineSchedule schedule;
  schedule.name = std::move(name);
  schedule.stages = problem.stages();
  schedule.micro_batches = problem.micro_batches;
  schedule.ranks.resize(static_cast<std::size_t>(problem.ranks));
  return schedule;
}

}  // namespace pipeline

const std::vector<PipelineAlgorithm>& pipeline_algorithms() {
  static const std::vector<PipelineAlgorithm> all{pipeline::naive(), pipeline::gpipe(),
                                                  pipeline::one_forward_one_backward(),
                                                  pipeline::interleaved_1f1b(), pipeline::zb_h1()};
  return all;
}

const PipelineAlgorithm& pipeline_algorithm(std::string_view name) {
  std::vector<std::string_view> names;
  for (const PipelineAlgorithm& algorithm : pipeline_algorithms()) {
    if (algorithm.name == name) return algorithm;
    names.push_back(algorithm.name);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("pipeline: expected {}, found \"{}\"", fmt::join(names, ", "), name));
}

std::string refusal(const PipelineAlgorithm& algorithm, const PipelineProblem& problem) {
  const auto positive = [&](const char* what, int number) {
    return number > 0 ? std::string()
                      : fmt::format("pipeline {}: expected at least one {}, found {}",
                                    algorithm.name, what, number);
  };
  for (std::string text :
       {positive("rank", problem.ranks), positive("micro-batch", problem.micro_batches),
        positive("stage per rank", problem.stages_per_rank)})
    if (!text.empty()) return text;
  std::string reason;
  if (algorithm.refuses) {
    reason = algorithm.refuses(problem);
  } else if (problem.stages_per_rank != 1) {
    reason = fmt::format("expected one stage per rank, found {}", problem.stages_per_rank);
  }
  return reason.empty() ? reason : fmt::format("pipeline {}: {}", algorithm.name, reason);
}

PipelineSchedule pipeline_schedule(std::string_view algorithm, const PipelineProblem& problem) {
  const PipelineAlgorithm& row = pipeline_algorithm(algorithm);
  const std::string reason = refusal(row, problem);
  if (!reason.empty()) throw Error(ErrorCode::invalid_argument, reason);
  return row.generate(problem);
}

std::vector<std::vector<std::pair<int, int>>> clock_cycles(int micro_batches, int partitions) {
  if (micro_batches < 1 || partitions < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("clock_cycles: expected at least one micro-batch and one partition, "
                            "found {} and {}",
                            micro_batches, partitions));
  }
  std::vector<std::vector<std::pair<int, int>>> clocks;
  for (int k = 0; k < micro_batches + partitions - 1; ++k) {
    auto& pairs = clocks.emplace_back();
    for (int j = std::max(0, k - micro_batches + 1); j <= std::min(k, partitions - 1); ++j)
      pairs.emplace_back(k - j, j);
  }
  return clocks;
}

}  // namespace baton::transformer
