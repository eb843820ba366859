#include "composition.hpp"

namespace baton {
namespace {

struct Parts {
  explicit Parts(const Problem& p) : mates(mates_of(p)), leaders(leaders_of(p)) {
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

Schedule compose(const Problem& p, Schedule (*across)(const Problem&), const char* name) {
  ScheduleBuilder all(p);
  const Parts parts(p);
  const Regions work{all.work()};
  const int rounds = ceil_log2(p.hosts->largest());
  all.embed(reduce_binomial(parts.within), parts.mates, work, work);
  while (all.round() < rounds) all.end_round();
  if (parts.leads) all.embed(across(parts.across), parts.leaders, {}, work);
  all.embed(broadcast_binomial(parts.back), parts.mates, {}, work);
  return all.build(name);
}

Cost compose_cost(const Problem& p, Cost (*across)(const Problem&)) {
  const Parts parts(p);
  const int rounds = ceil_log2(p.hosts->largest());
  Cost cost;
  add_local(cost, reduce_binomial_cost(parts.within), rounds);
  if (parts.leads) {
    add_across(cost, across(parts.across), 1);
  } else {
    add_rounds_across(cost, across(parts.across));
  }
  add_local(cost, broadcast_binomial_cost(parts.back), rounds);
  return cost;
}

}  // namespace

/// All-reduce by leaders: each host's ranks reduce to the lowest of them by a binomial tree, the
/// leaders of the H hosts all-reduce by recursive multiplying, and broadcast by a binomial tree.
///
/// Rounds   2 ceil(log2 L) within hosts, L being the ranks of the largest; those of the leaders'
///          all-reduce across.
/// Sent     n for each child and the parent within the host; the leaders' all-reduce.
/// Domain   any hosts, any count.
/// Order    one tree, so ranks agree bit for bit; hosts' ranks need not be neighbours, so op must
///          be commutative.
/// Scratch  that of the parts.
/// Source   Husbands & Hoe, "MPI-StarT: Delivering Network Performance to Numerical Applications",
///          SC 1998.
Schedule all_reduce_leaders(const Problem& p) {
  return compose(p, all_reduce_recursive_multiplying, "leaders");
}
Cost all_reduce_leaders_cost(const Problem& p) {
  return compose_cost(p, all_reduce_recursive_multiplying_cost);
}

/// The same for long vectors: leaders all-reduce on a circulant graph, which moves about 2n(H-1)/H
/// elements over each host's link.
Schedule all_reduce_leaders_circulant(const Problem& p) {
  return compose(p, all_reduce_circulant, "leaders_circulant");
}
Cost all_reduce_leaders_circulant_cost(const Problem& p) {
  return compose_cost(p, all_reduce_circulant_cost);
}

}  // namespace baton
