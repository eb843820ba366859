#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "baton/error.hpp"
#include "diagrams.hpp"

namespace baton::diagrams {

std::string goal(const Timeline& timeline) {
  if (timeline.operations.size() != 1 || !timeline.operations[0].schedules) {
    throw Error(ErrorCode::unsupported,
                fmt::format("a GOAL file expects one operation with its schedules, found {}",
                            timeline.operations.size()));
  }
  const TimedOperation& operation = timeline.operations[0];
  const auto& schedules = *operation.schedules;
  std::map<std::pair<int, std::uint32_t>, std::int64_t> work;  // ns, by rank and step
  if (timeline.kind != TimelineKind::rounds) {
    for (const Event& event : timeline.events) {
      if (!event.message()) work[{event.rank, event.step}] = event.end - event.start;
    }
  }
  std::int64_t lanes = 8;
  for (const Schedule& schedule : schedules) {
    lanes = std::max<std::int64_t>(lanes, schedule.lanes());
  }
  std::string out = fmt::format("num_ranks {}\n", schedules.size());
  const auto put = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  for (const Schedule& schedule : schedules) {
    put("\nrank {} {{\n", schedule.rank());
    std::map<std::tuple<int, int, StepKind>, std::int64_t> count;
    const auto steps = schedule.steps();
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      if (step.message()) {
        // The k-th message of a channel has tag k, in each lane apart.
        const std::int64_t k = count[{step.peer, step.lane, step.kind}]++;
        put("l{}: {} {}b {} {} tag {}\n", i + 1, name(step.kind),
            schedule.length(step) * static_cast<std::int64_t>(operation.element_bytes),
            step.kind == StepKind::send ? "to" : "from", step.peer, lanes * k + step.lane);
      } else {
        const auto took = work.find({operation.rank_of(schedule.rank()), i});
        const std::int64_t given =
            step.kind == StepKind::compute ? schedule.computation(step).ns : 0;
        put("l{}: calc {}\n", i + 1, took == work.end() ? given : took->second);
      }
      for (const std::uint32_t d : schedule.dependencies(i)) {
        put("l{} requires l{}\n", i + 1, d + 1);
      }
    }
    out += "}\n";
  }
  return out;
}

}  // namespace baton::diagrams
