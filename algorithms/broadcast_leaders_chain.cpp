#include <algorithm>

#include "leaders.hpp"

namespace baton::algorithms {

extern const Row broadcast_chain;  // its part

namespace {

/// Broadcast by leaders along chains: the root to one rank of each other host, then these and the
/// root to the ranks of their hosts. Cut into segments, it is a pipeline in which each link carries
/// the data once.
///
/// Rounds   H-1 across, L-1 within, on H hosts of L ranks each. With unequal numbers: the most that
///          a leader's place in the chain and the rounds of its own host add up to.
/// Sent     2n by leaders that have a next one, n by other ranks but the last of each chain.
///          Received by each rank but the root: n.
/// Domain   any hosts, root and count.
/// Scratch  none.
/// Source   Kielmann, Hofman, Bal, Plaat & Bhoedjang, "MagPIe: MPI's Collective Communication
///          Operations for Clustered Wide Area Systems", PPoPP 1999; the chains are folklore.
Schedule generate(const Problem& p) {
  return broadcast_by_leaders(p, broadcast_chain, "leaders_chain");
}

Cost cost(const Problem& p) {
  const int hosts = p.hosts->count();
  return broadcast_by_leaders_cost(
      p, broadcast_chain, [&](int v) { return std::min(v + 1, hosts - 1); },
      [](int ranks) { return ranks - 1; });
}

}  // namespace

extern const Row broadcast_leaders_chain{.collective = Collective::broadcast,
                                         .name = "leaders_chain",
                                         .place = 9,
                                         .generate = generate,
                                         .cost = cost,
                                         .hierarchical = true,
                                         .rounds = "H-1 across, L-1 within",
                                         .sent = "2n by leaders",
                                         .source = "Kielmann et al., PPoPP 1999; folklore"};

}  // namespace baton::algorithms
