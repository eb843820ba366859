#pragma once
/// A predicted step beside a recorded one, item by item.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "baton/timeline.hpp"
#include "program.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// A computation of a rank ("2F0", "optimizer"), a collective ("all_reduce"), or one end of a
/// message ("send", "recv"), from the step's begin. A receive begins and ends when its message is
/// there.
struct StepItem {
  int rank = 0;
  std::string name;
  std::optional<ComputationKind> computation;  ///< of an exchange: none
  std::vector<int> ranks;                      ///< of an exchange
  std::int64_t bytes = 0;                      ///< likewise; of the whole vector
  std::int64_t begin = 0, end = 0;             ///< ns
  std::uint32_t last = 0;                      ///< index of the event that ends it
  bool behind = false;                         ///< starts after the optimizer
  /// ns.
  std::int64_t duration() const { return end - begin; }
};

/// The items of a prediction's timeline (PredictOptions::timeline) of the same plan, by rank, in
/// the order of the programs. Computations that recordings do not have are left out.
std::vector<StepItem> items_of(const StepPlan& plan, const Timeline& predicted);

/// An item that was predicted and measured.
struct JoinedItem {
  StepItem predicted, measured;
};
/// The last whole step of a recording, joined.
struct JoinedStepItems {
  std::vector<JoinedItem> items;  ///< in the order of `predicted`
  std::vector<StepItem> missing;  ///< predicted, and not found in the recording
  Timeline measured;              ///< the recording's events of this step, from its begin
  std::vector<JoinedStep> ends;   ///< the last events of items, of `measured` and the prediction
  std::int64_t predicted_ns = 0;  ///< of the joined items: from the first begin to the last end
  std::int64_t measured_ns = 0;   ///< likewise
};
/// Joins the k-th item of a rank of one name, ranks and bytes with the k-th such item of the
/// last step of the recording that has the optimizer's computation; gathers behind it belong to the
/// step. The recording is of BATON_TRACE, of as many ranks. Throws Error(invalid_argument) if it
/// has other ranks, or no whole step.
JoinedStepItems join(const std::vector<StepItem>& predicted, const Timeline& recording);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
