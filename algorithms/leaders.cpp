#include "leaders.hpp"

#include <algorithm>

namespace baton::algorithms {

extern const Row broadcast_binomial, reduce_binomial;

namespace {

struct BroadcastParts {
  explicit BroadcastParts(const Problem& p) : mates(mates_of(p)), leaders(leaders_of(p)) {
    const int host = p.hosts->of(p.rank), local = place_in(mates, p.rank);
    across = part_of(p, Collective::broadcast, p.hosts->count(), host, p.count);
    across.root = p.hosts->of(p.root);
    within = part_of(p, Collective::broadcast, static_cast<int>(mates.size()), local, p.count);
    leads = local == 0;
  }

  std::vector<int> mates, leaders;
  Problem across, within;
  bool leads;
};

struct AllReduceParts {
  explicit AllReduceParts(const Problem& p) : mates(mates_of(p)), leaders(leaders_of(p)) {
    const int size = static_cast<int>(mates.size()), local = p.hosts->local(p.rank);
    within = part_of(p, Collective::reduce, size, local, p.count);
    across = part_of(p, Collective::all_reduce, p.hosts->count(), p.hosts->of(p.rank), p.count);
    across.average = p.average;
    back = part_of(p, Collective::broadcast, size, local, p.count);
    leads = local == 0;
  }

  std::vector<int> mates, leaders;
  Problem within, across, back;
  bool leads;
};

}  // namespace

Schedule broadcast_by_leaders(const Problem& p, const Row& part, const char* name) {
  ScheduleBuilder tree(p);
  const BroadcastParts parts(p);
  const Regions data{tree.output()};
  if (parts.leads) tree.embed(part.generate(parts.across), parts.leaders, {}, data);
  tree.embed(part.generate(parts.within), parts.mates, {}, data);
  return tree.build(name);
}

Cost broadcast_by_leaders_cost(const Problem& p, const Row& part,
                               const std::function<int(int)>& done,
                               const std::function<int(int)>& within) {
  const BroadcastParts parts(p);
  const int hosts = p.hosts->count();
  Cost cost;
  int local = 0, last = 0;
  for (int v = 0; v < hosts; ++v) {
    const int host = (parts.across.root + v) % hosts;
    const int rounds = within(static_cast<int>(p.hosts->ranks(host).size()));
    last = std::max(last, done(v) + rounds);
    local = std::max(local, rounds);
  }
  if (parts.leads) {
    add_across(cost, part.cost(parts.across), 1);
  } else {
    add_rounds_across(cost, part.cost(parts.across));
  }
  add_local(cost, part.cost(parts.within), local);
  cost.rounds = cost.depth = last;
  return cost;
}

Schedule all_reduce_by_leaders(const Problem& p, const Row& across, const char* name) {
  ScheduleBuilder all(p);
  const AllReduceParts parts(p);
  const Regions work{all.work()};
  const int rounds = ceil_log2(p.hosts->largest());
  all.embed(reduce_binomial.generate(parts.within), parts.mates, work, work);
  while (all.round() < rounds) all.end_round();
  if (parts.leads) all.embed(across.generate(parts.across), parts.leaders, {}, work);
  all.embed(broadcast_binomial.generate(parts.back), parts.mates, {}, work);
  return all.build(name);
}

Cost all_reduce_by_leaders_cost(const Problem& p, const Row& across) {
  const AllReduceParts parts(p);
  const int rounds = ceil_log2(p.hosts->largest());
  Cost cost;
  add_local(cost, reduce_binomial.cost(parts.within), rounds);
  if (parts.leads) {
    add_across(cost, across.cost(parts.across), 1);
  } else {
    add_rounds_across(cost, across.cost(parts.across));
  }
  add_local(cost, broadcast_binomial.cost(parts.back), rounds);
  return cost;
}

}  // namespace baton::algorithms
