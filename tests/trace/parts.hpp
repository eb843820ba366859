#pragma once
/// Recordings made by hand.

#include <string>
#include <vector>

#include "support/schedules.hpp"
#include "trace/part.hpp"

namespace support {

/// What rank `rank` of `ranks` records of `calls` ring all-reduces, a step every 100 ns from
/// `begin` on, by a clock that all share.
inline baton::tracing::Part ring_part(int rank, int ranks, std::uint32_t calls,
                                      std::int64_t begin = 1000) {
  using namespace baton;
  tracing::Part part;
  part.rank = rank;
  part.ranks = ranks;
  part.host_name = "host" + std::to_string(rank);
  part.host = rank;
  std::vector<int> members;
  for (int r = 0; r < ranks; ++r) members.push_back(r);
  part.groups.push_back({members, 0});
  const auto registry = Registry::builtin();
  TimedOperation what;
  what.name = "all_reduce";
  what.choice = {"ring", 0};
  what.type = "f32";
  what.op = "sum";
  what.bytes = 4 * 8;
  what.element_bytes = 4;
  part.plans.push_back({0, what,
                        registry.find(Collective::all_reduce, "ring")
                            .generate(problem(Collective::all_reduce, ranks, rank, 8))});
  std::int64_t time = begin;
  for (std::uint32_t call = 0; call < calls; ++call) {
    const auto steps = static_cast<std::uint32_t>(part.plans[0].schedule.steps().size());
    for (std::uint32_t step = 0; step < steps; ++step, time += 100)
      part.records.push_back({time, time + 10, time + 90, 0, call, step});
  }
  return part;
}

/// Whether all but what a recording is judged by is the same.
inline bool same(const baton::tracing::Part& a, const baton::tracing::Part& b) {
  const auto same_plan = [](const auto& x, const auto& y) {
    return x.group == y.group && x.schedule == y.schedule && x.what.name == y.what.name &&
           x.what.choice == y.what.choice && x.what.type == y.what.type && x.what.op == y.what.op &&
           x.what.bytes == y.what.bytes && x.what.element_bytes == y.what.element_bytes;
  };
  return a.rank == b.rank && a.ranks == b.ranks && a.host == b.host && a.host_name == b.host_name &&
         a.clock == b.clock && a.before == b.before && a.after == b.after &&
         a.dropped == b.dropped && a.groups == b.groups && a.records == b.records &&
         std::equal(a.plans.begin(), a.plans.end(), b.plans.begin(), b.plans.end(), same_plan);
}

}  // namespace support
