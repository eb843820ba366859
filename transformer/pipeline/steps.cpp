#include "steps.hpp"

#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace baton::transformer {
namespace {

/// Where the stages of a schedule lie, and so between whom its results go.
class Places {
 public:
  explicit Places(const PipelineSchedule& schedule)
      : rank_of_stage_(ranks_of_stages(schedule)), stages_(schedule.stages) {}

  /// The rank that the result of an action of `rank` is sent to; -1: none.
  int receiver(int rank, const PipelineAction& action) const {
    return other(rank, action, forward(action) ? 1 : -1);
  }
  /// The rank that sends the result that an action of `rank` needs; -1: none.
  int sender(int rank, const PipelineAction& action) const {
    return other(rank, action, forward(action) ? -1 : 1);
  }
  static bool forward(const PipelineAction& action) { return action.work == PipelineWork::forward; }

 private:
  int other(int rank, const PipelineAction& action, int by) const {
    const int stage = action.stage + by;
    if (action.work == PipelineWork::backward_weight || stage < 0 || stage >= stages_) return -1;
    const int place = rank_of_stage_[static_cast<std::size_t>(stage)];
    return place == rank ? -1 : place;
  }
  std::vector<int> rank_of_stage_;
  int stages_;
};

/// Results of one kind from one rank to another, in the order in which they are sent.
struct Arrivals {
  std::vector<PipelineAction> list;
  std::size_t received = 0;
};

}  // namespace

std::vector<PipelineStep> steps_of(const PipelineSchedule& schedule, int rank) {
  const Places places(schedule);
  const auto actions_of = [&](int r) -> const auto& {
    return schedule.ranks[static_cast<std::size_t>(r)];
  };
  std::map<std::pair<int, bool>, Arrivals> arrivals;  // by sender, and whether they are activations
  for (int sender = 0; sender < schedule.size(); ++sender) {
    for (const PipelineAction& action : actions_of(sender)) {
      if (sender != rank && places.receiver(sender, action) == rank)
        arrivals[{sender, Places::forward(action)}].list.push_back(action);
    }
  }
  std::set<std::tuple<bool, int, int>> here;  // activations or gradients of a stage, by micro-batch
  std::vector<PipelineStep> steps;
  for (const PipelineAction& action : actions_of(rank)) {
    if (const int sender = places.sender(rank, action); sender >= 0) {
      const bool activation = Places::forward(action);
      const auto needed =
          std::tuple(activation, action.stage + (activation ? -1 : 1), action.micro_batch);
      Arrivals& from = arrivals[{sender, activation}];
      while (!here.contains(needed) && from.received < from.list.size()) {
        const PipelineAction& result = from.list[from.received++];
        steps.push_back({PipelineStepKind::recv, result, sender});
        here.emplace(activation, result.stage, result.micro_batch);
      }
    }
    steps.push_back({PipelineStepKind::compute, action, -1});
    if (const int receiver = places.receiver(rank, action); receiver >= 0)
      steps.push_back({PipelineStepKind::send, action, receiver});
  }
  return steps;
}

}  // namespace baton::transformer
