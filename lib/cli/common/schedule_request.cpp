#include "schedule_request.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "baton/schedule/passes.hpp"
#include "baton/schedule/text.hpp"
#include "text.hpp"

namespace baton::cli {
namespace {

Problem problem_of(const CollectiveOptions& data, Collective collective) {
  Problem p;
  p.collective = collective;
  p.size = data.rank_count();
  p.hosts = data.grouping(p.size);
  if (data.root >= p.size) {
    refuse(fmt::format("expected a root from 0 to {}, found {}", p.size - 1, data.root));
  }
  p.root = rooted(collective) ? data.root : 0;
  p.in_place = data.in_place;
  p.average = reducing(collective) && data.op_kind() == OpKind::avg;
  const bool vector = collective == Collective::all_reduce || collective == Collective::reduce ||
                      collective == Collective::broadcast;
  p.count = data.count >= 0 ? data.count : (vector ? p.size : 1);  // an element per chunk
  if (collective == Collective::barrier) p.count = 1;
  return p;
}

std::vector<Schedule> unfused(const ScheduleRequest& request) {
  const CollectiveOptions& data = request.data;
  if (!data.schedule.empty()) return parse(file_text(data.schedule), data.schedule);
  if (data.collective.empty()) {
    refuse("expected a collective (baton list shows them) or --schedule FILE, found neither");
  }
  const Registry registry = Registry::builtin();
  const Collective collective = collective_named(data.collective);
  const Problem problem = problem_of(data, collective);
  const Algorithm& algorithm = data.algorithm.empty() ? *registry.of(collective).at(0)
                                                      : registry.find(collective, data.algorithm);
  if (const std::string why = refusal(algorithm, problem); !why.empty()) {
    refuse(fmt::format("{}: algorithm {} {}", name(collective), algorithm.name, why));
  }
  std::vector<Schedule> schedules;
  for (int r = 0; r < problem.size; ++r) {
    Problem own = problem.at(r);
    if (algorithm.pipelined && request.segment > 0) {
      own.blocks = static_cast<int>(
          std::max<std::int64_t>(1, (own.count + request.segment - 1) / request.segment));
    }
    Schedule schedule = algorithm.generate(own);
    schedules.push_back(algorithm.pipelined ? schedule : segmented(schedule, request.segment));
  }
  return schedules;
}

}  // namespace

std::vector<Schedule> schedules_of(const ScheduleRequest& request) {
  return request.fused ? fused(unfused(request), request.window) : unfused(request);
}

}  // namespace baton::cli
