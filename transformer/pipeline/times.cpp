#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "results.hpp"
#include "verify.hpp"

namespace baton::transformer {

std::int64_t units(PipelineWork work) { return work == PipelineWork::backward ? 2 : 1; }

PipelineTimes unit_times(const PipelineSchedule& schedule) {
  PipelineTimes times;
  std::map<pipeline::Result, std::int64_t> there;        // since when
  std::map<pipeline::Result, std::vector<int>> waiting;  // ranks
  std::vector<std::int64_t> free(schedule.ranks.size(), 0);
  std::vector<int> ready;
  for (int rank = 0; rank < schedule.size(); ++rank) ready.push_back(rank);
  for (const auto& actions : schedule.ranks) times.start.emplace_back(actions.size(), -1);
  std::vector<std::size_t> at(schedule.ranks.size(), 0);
  // The time at which an action may begin; -1 if a result is not there, for which its rank waits.
  const auto begin = [&](int rank, const PipelineAction& action) {
    std::int64_t time = free[static_cast<std::size_t>(rank)];
    for (const pipeline::Result& need : pipeline::needed(action, schedule.stages)) {
      const auto found = there.find(need);
      if (found == there.end()) {
        waiting[need].push_back(rank);
        return std::int64_t{-1};
      }
      time = std::max(time, found->second);
    }
    return time;
  };
  while (!ready.empty()) {
    const int rank = ready.back();
    ready.pop_back();
    const auto r = static_cast<std::size_t>(rank);
    const auto& actions = schedule.ranks[r];
    for (; at[r] < actions.size(); ++at[r]) {
      const PipelineAction& action = actions[at[r]];
      const std::int64_t start = begin(rank, action);
      if (start < 0) break;
      times.start[r][at[r]] = start;
      free[r] = start + units(action.work);
      times.span = std::max(times.span, free[r]);
      for (const pipeline::Result& result : pipeline::made(action)) {
        there.emplace(result, free[r]);
        if (const auto ranks = waiting.find(result); ranks != waiting.end()) {
          ready.insert(ready.end(), ranks->second.begin(), ranks->second.end());
          waiting.erase(ranks);
        }
      }
    }
  }
  return times;
}

}  // namespace baton::transformer
