#include "wanted.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "baton/error.hpp"
#include "baton/schedule/passes.hpp"
#include "baton/schedule/text.hpp"
#include "baton/types.hpp"
#include "workload.hpp"

namespace baton::cli {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

Problem problem_of(const Wanted& wanted, Collective collective) {
  Problem p;
  p.collective = collective;
  p.size = wanted.size();
  p.hosts = wanted.grouping();
  if (wanted.root >= p.size) {
    refuse(fmt::format("expected a root from 0 to {}, found {}", p.size - 1, wanted.root));
  }
  p.root = rooted(collective) ? wanted.root : 0;
  p.in_place = wanted.in_place;
  p.average = reducing(collective) && op_named(wanted.op) == OpKind::avg;
  const bool vector = collective == Collective::all_reduce || collective == Collective::reduce ||
                      collective == Collective::broadcast;
  p.count = wanted.count >= 0 ? wanted.count : (vector ? p.size : 1);  // an element per chunk
  if (collective == Collective::barrier) p.count = 1;
  return p;
}

std::vector<Schedule> ungrouped(const Wanted& wanted) {
  if (!wanted.schedule.empty()) return parse(file_text(wanted.schedule), wanted.schedule);
  if (wanted.collective.empty()) {
    refuse("expected a collective (baton list shows them) or --schedule FILE, found neither");
  }
  const Registry registry = Registry::builtin();
  const Collective collective = collective_named(wanted.collective);
  const Problem problem = problem_of(wanted, collective);
  const Algorithm& algorithm = wanted.algorithm.empty()
                                   ? *registry.of(collective).at(0)
                                   : registry.find(collective, wanted.algorithm);
  if (const std::string why = refusal(algorithm, problem); !why.empty()) {
    refuse(fmt::format("{}: algorithm {} {}", name(collective), algorithm.name, why));
  }
  std::vector<Schedule> schedules;
  for (int r = 0; r < problem.size; ++r) {
    Problem own = problem.at(r);
    if (algorithm.pipelined && wanted.segment > 0) {
      own.blocks = static_cast<int>(
          std::max<std::int64_t>(1, (own.count + wanted.segment - 1) / wanted.segment));
    }
    Schedule schedule = algorithm.generate(own);
    schedules.push_back(algorithm.pipelined ? schedule : segmented(schedule, wanted.segment));
  }
  return schedules;
}

}  // namespace

int Wanted::size() const {
  if (hosts.empty()) return ranks > 0 ? ranks : 4;
  const int size = parse_hosts(hosts).size();
  if (ranks > 0 && size != ranks) {
    refuse(fmt::format("--hosts: expected the hosts of {} ranks, found those of {}", ranks, size));
  }
  return size;
}

std::shared_ptr<const Hosts> Wanted::grouping() const {
  return hosts.empty() ? nullptr : host_grouping(parse_hosts(hosts).of());
}

std::vector<Schedule> schedules_of(const Wanted& wanted) {
  if (wanted.in_groups) return fused(ungrouped(wanted), wanted.window);
  return ungrouped(wanted);
}

}  // namespace baton::cli
