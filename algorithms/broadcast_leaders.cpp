#include "leaders.hpp"

namespace baton::algorithms {

extern const Row broadcast_binomial;  // its part

namespace {

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

/// Broadcast by leaders: the root to one rank of each other host by a binomial tree, then they and
/// the root to the ranks of their hosts, by binomial trees again.
///
/// Rounds   ceil(log2 H) across, ceil(log2 L) within, on H hosts of L ranks each. With unequal
///          numbers: the most that a leader's turn across and the rounds of its own host add up to.
/// Sent     n(ceil(log2 H) + ceil(log2 L)) by the root: n for each child in either tree. Received
///          by each rank but the root: n.
/// Domain   any hosts, root and count.
/// Scratch  none.
/// Source   Kielmann, Hofman, Bal, Plaat & Bhoedjang, "MagPIe: MPI's Collective Communication
///          Operations for Clustered Wide Area Systems", PPoPP 1999.
Schedule generate(const Problem& p) {
  return broadcast_by_leaders(p, broadcast_binomial, "leaders");
}

Cost cost(const Problem& p) {
  const int hosts = p.hosts->count();
  return broadcast_by_leaders_cost(
      p, broadcast_binomial, [&](int v) { return binomial_end(v, hosts); },
      [](int ranks) { return ceil_log2(ranks); });
}

}  // namespace

extern const Row broadcast_leaders{.collective = Collective::broadcast,
                                   .name = "leaders",
                                   .place = 8,
                                   .generate = generate,
                                   .cost = cost,
                                   .hierarchical = true,
                                   .rounds = "ceil(log2 H) across, ceil(log2 L) within",
                                   .sent = "n(ceil(log2 H) + ceil(log2 L)) by the root",
                                   .source = "Kielmann et al., PPoPP 1999"};

}  // namespace baton::algorithms
