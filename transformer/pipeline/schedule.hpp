#pragma once
/// Pipeline schedules: who computes which part of which micro-batch, in which order, as plain data.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Kinds of computations of a stage.
enum class PipelineWork : std::uint8_t {
  forward,          ///< its output, from the output of the stage before
  backward,         ///< the gradients by its input and by its weights
  backward_input,   ///< the gradient by its input only
  backward_weight,  ///< the gradient by its weights, after that by its input
};
std::string_view name(PipelineWork work);  ///< "forward" and so on

/// A computation of one stage for one micro-batch. Both are numbered from 0.
struct PipelineAction {
  PipelineWork work = PipelineWork::forward;
  int stage = 0;
  int micro_batch = 0;
  bool operator==(const PipelineAction&) const = default;
};
/// For example "2F0": stage, F (forward), B (backward), I (backward_input) or W (backward_weight),
/// micro-batch.
std::string print(const PipelineAction& action);

/// The actions of all ranks, each rank's in its order. The ranks are those of an axis pp.
///
/// Messages follow from where stages lie (steps.hpp): the output of a stage goes to the rank
/// of the next stage as soon as it is computed, and the gradient by its input to that of the stage
/// before. Within a rank nothing is sent.
struct PipelineSchedule {
  std::string name;  ///< of the algorithm or file
  int stages = 1;
  int micro_batches = 1;
  std::vector<std::vector<PipelineAction>> ranks;

  /// The number of ranks.
  int size() const { return static_cast<int>(ranks.size()); }
  bool operator==(const PipelineSchedule&) const = default;
};

/// The rank of each stage: the first one that computes it forward; -1: nobody does.
std::vector<int> ranks_of_stages(const PipelineSchedule& schedule);

/// What a generator makes a schedule for.
struct PipelineProblem {
  int ranks = 1;
  int micro_batches = 1;
  int stages_per_rank = 1;
  /// The number of stages.
  int stages() const { return ranks * stages_per_rank; }
};

/// The properties of a schedule in closed form. Proved against its actions.
struct PipelineCost {
  /// The part of the ranks' time in which they wait, at unit costs: forward, backward_input and
  /// backward_weight take one unit of time each, backward two, messages none.
  double bubble = 0;
  /// Of each rank: the most pairs of stage and micro-batch at once of which forward has begun and
  /// backward (or backward_weight) has not ended.
  std::vector<int> peak;
  std::int64_t messages = 0;  ///< of all ranks: activations and gradients
};

/// A way to order a pipeline: one row of pipeline_algorithms(), and one file.
struct PipelineAlgorithm {
  std::string name;
  std::function<PipelineSchedule(const PipelineProblem&)> generate;
  std::function<PipelineCost(const PipelineProblem&)> cost;
  /// Why it does not serve a problem, as the end of a sentence ("needs …, found …"); empty if it
  /// does. Null: it serves every problem of one stage per rank.
  std::function<std::string(const PipelineProblem&)> refuses;
  std::string bubble, peak, messages;  ///< formulas of the cost, for readers
  std::string source;                  ///< where it was published
};

/// All that the library has. The first is the reference.
const std::vector<PipelineAlgorithm>& pipeline_algorithms();
/// The one of this name. Throws Error(invalid_argument) that lists all if there is none.
const PipelineAlgorithm& pipeline_algorithm(std::string_view name);
/// Why an algorithm does not serve a problem, as a sentence; empty if it does.
std::string refusal(const PipelineAlgorithm& algorithm, const PipelineProblem& problem);
/// Its schedule. Throws Error(invalid_argument) if there is no such algorithm, or it does not serve
/// the problem.
PipelineSchedule pipeline_schedule(std::string_view algorithm, const PipelineProblem& problem);

/// GPipe's order of forward: at clock k the pairs (micro-batch i, partition j) with i + j = k, by
/// rising j. There are micro_batches + partitions - 1 clocks. Throws Error(invalid_argument) if a
/// number is not positive. Source: Kim et al., torchgpipe (2020), algorithm 1.
std::vector<std::vector<std::pair<int, int>>> clock_cycles(int micro_batches, int partitions);

/// The text form of schedules that PyTorch's pipelining reads and writes: a line of
/// comma-separated actions for each rank. Cells may be empty. `origin` names the text in errors.
/// Throws Error(invalid_argument) naming line and cell, and what was expected and found.
PipelineSchedule parse_pipeline(std::string_view text, const std::string& origin);
/// parse_pipeline(print(schedule), …) has the same actions. Cells are units of time at unit costs;
/// an empty cell: the rank waits, or goes on with a longer action.
std::string print(const PipelineSchedule& schedule);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
