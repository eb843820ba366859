#include <algorithm>

#include "composition.hpp"

namespace baton {
namespace {

struct Parts {
  explicit Parts(const Problem& p) : mates(mates_of(p)), leaders(leaders_of(p)) {
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

Schedule compose(const Problem& p, Schedule (*broadcast)(const Problem&), const char* name) {
  ScheduleBuilder tree(p);
  const Parts parts(p);
  const Regions data{tree.output()};
  if (parts.leads) tree.embed(broadcast(parts.across), parts.leaders, {}, data);
  tree.embed(broadcast(parts.within), parts.mates, {}, data);
  return tree.build(name);
}

/// `done(v)` is when the leader at distance v from the root's host has passed the data on to
/// others, `within(L)` the rounds of a host of L ranks.
template <class Done, class Within>
Cost compose_cost(const Problem& p, Cost (*broadcast)(const Problem&), const Done& done,
                  const Within& within) {
  const Parts parts(p);
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
    add_across(cost, broadcast(parts.across), 1);
  } else {
    add_rounds_across(cost, broadcast(parts.across));
  }
  add_local(cost, broadcast(parts.within), local);
  cost.rounds = cost.depth = last;
  return cost;
}

/// When the rank at distance v of a binomial broadcast among `size` has sent all that it sends.
int binomial_end(int v, int size) {
  const auto sends = [&](int u, int from, int to) {  // at distances from, 2 from, … below `to`
    int n = 0;
    for (int d = from; d < to && u + d < size; d *= 2) ++n;
    return n;
  };
  const auto reach = [&](int u) { return u == 0 ? size : u & -u; };
  int end = sends(v, 1, reach(v));
  for (int u = v; u > 0; u &= u - 1) end += sends(u & (u - 1), u & -u, reach(u & (u - 1)));
  return end;
}

}  // namespace

/// Broadcast by leaders: the root to one rank of each other host by a binomial tree, then they and
/// the root to the ranks of their hosts, by binomial trees again.
///
/// Rounds   ceil(log2 H) across H hosts and ceil(log2 L) within, where hosts have L ranks each;
///          else the most that a leader's turn across and its own host add up to.
/// Sent     n for each child in either tree. Received by each rank but the root: n.
/// Domain   any hosts, root and count.
/// Scratch  none.
/// Source   Kielmann, Hofman, Bal, Plaat & Bhoedjang, "MagPIe: MPI's Collective Communication
///          Operations for Clustered Wide Area Systems", PPoPP 1999.
Schedule broadcast_leaders(const Problem& p) { return compose(p, broadcast_binomial, "leaders"); }
Cost broadcast_leaders_cost(const Problem& p) {
  const int hosts = p.hosts->count();
  return compose_cost(
      p, broadcast_binomial_cost, [&](int v) { return binomial_end(v, hosts); },
      [](int ranks) { return ceil_log2(ranks); });
}

/// The same by chains: cut into segments, a pipeline in which each link carries the data once.
Schedule broadcast_leaders_chain(const Problem& p) {
  return compose(p, broadcast_chain, "leaders_chain");
}
Cost broadcast_leaders_chain_cost(const Problem& p) {
  const int hosts = p.hosts->count();
  return compose_cost(
      p, broadcast_chain_cost, [&](int v) { return std::min(v + 1, hosts - 1); },
      [](int ranks) { return ranks - 1; });
}

}  // namespace baton
