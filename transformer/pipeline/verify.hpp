#pragma once
/// The proof of a pipeline schedule, before it runs.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Kinds of flaws.
enum class PipelineFlawKind : std::uint8_t {
  bounds,    ///< a stage or micro-batch that the schedule does not have
  place,     ///< a stage that lies on no rank, or on two
  missing,   ///< a stage without forward, backward or a part of it, of a micro-batch
  twice,     ///< the same gradient or output is computed more than once
  order,     ///< a rank computes a result before one that it needs and computes itself
  deadlock,  ///< ranks that wait for each other
  bubble,    ///< the bubble differs from the documented one
  peak,      ///< the peak of activations differs
  messages,  ///< the number of messages differs
};
std::string_view name(PipelineFlawKind kind);  ///< "bounds" and so on

/// A reason why a schedule must not run.
struct PipelineFlaw {
  PipelineFlawKind kind = PipelineFlawKind::bounds;
  int rank = -1;         ///< that it concerns; -1: all
  int stage = -1;        ///< -1: all
  int micro_batch = -1;  ///< -1: all
  std::string text;      ///< a sentence that names them
};

/// When the actions of a schedule begin at unit costs: forward, backward_input and backward_weight
/// take one unit of time, backward two, messages none.
struct PipelineTimes {
  /// Of each rank, in the order of its actions; -1: never.
  std::vector<std::vector<std::int64_t>> start;
  std::int64_t span = 0;  ///< from the beginning of the first to the end of the last
};
/// An action begins when its rank is free and the results that it needs are there.
PipelineTimes unit_times(const PipelineSchedule& schedule);
/// The units of time that an action takes.
std::int64_t units(PipelineWork work);

/// The result of a proof.
struct PipelineProof {
  std::vector<PipelineFlaw> flaws;  ///< empty: the schedule is right
  PipelineCost cost;                ///< as counted; complete only without flaws
  PipelineTimes times;              ///< complete only without flaws
  /// Whether there is no flaw.
  bool right() const { return flaws.empty(); }
};

/// Proves that each micro-batch goes through each stage forward and backward once, in an order that
/// respects data; that no rank waits for ever, even if every message waits for its receiver and the
/// messages of one kind between two ranks stay in their order; and counts bubble, peak and
/// messages. Cost: in proportion to the actions times the ranks.
PipelineProof verify(const PipelineSchedule& schedule);
/// The same, and that the counted cost is `documented`.
PipelineProof verify(const PipelineSchedule& schedule, const PipelineCost& documented);
/// Throws Error(invalid_argument) with the first flaw's sentence if there is one.
void expect_right(const PipelineSchedule& schedule);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
