#pragma once
/// The results that actions of a pipeline make and need.

#include <compare>
#include <cstdint>
#include <vector>

#include "schedule.hpp"

namespace baton::transformer::pipeline {

/// Kinds of results.
enum class ResultKind : std::uint8_t { output, input_gradient, weight_gradient };

/// A result of a stage for a micro-batch.
struct Result {
  ResultKind kind = ResultKind::output;
  int stage = 0, micro_batch = 0;
  auto operator<=>(const Result&) const = default;
};

/// The results that an action makes; backward makes two.
inline std::vector<Result> made(const PipelineAction& a) {
  const auto result = [&](ResultKind kind) { return Result{kind, a.stage, a.micro_batch}; };
  switch (a.work) {
    case PipelineWork::forward:
      return {result(ResultKind::output)};
    case PipelineWork::backward:
      return {result(ResultKind::input_gradient), result(ResultKind::weight_gradient)};
    case PipelineWork::backward_input:
      return {result(ResultKind::input_gradient)};
    case PipelineWork::backward_weight:
      return {result(ResultKind::weight_gradient)};
  }
  return {};
}

/// The results that it needs, in a pipeline of `stages`.
inline std::vector<Result> needed(const PipelineAction& a, int stages) {
  const auto result = [&](ResultKind kind, int by) {
    return Result{kind, a.stage + by, a.micro_batch};
  };
  std::vector<Result> needs;
  switch (a.work) {
    case PipelineWork::forward:
      if (a.stage > 0) needs.push_back(result(ResultKind::output, -1));
      break;
    case PipelineWork::backward:
    case PipelineWork::backward_input:
      needs.push_back(result(ResultKind::output, 0));
      if (a.stage + 1 < stages) needs.push_back(result(ResultKind::input_gradient, 1));
      break;
    case PipelineWork::backward_weight:
      needs.push_back(result(ResultKind::input_gradient, 0));
      break;
  }
  return needs;
}

}  // namespace baton::transformer::pipeline
