#include "leaders.hpp"

namespace baton::algorithms {

extern const Row all_reduce_recursive_multiplying;  // its part across hosts

namespace {

/// All-reduce by leaders: each host's ranks reduce to the lowest of them by a binomial tree, the
/// leaders of the H hosts all-reduce by recursive multiplying, and broadcast by a binomial tree.
///
/// Rounds   2 ceil(log2 L) within, S(H) across: L is the ranks of the largest host, S(H) the rounds
///          of recursive_multiplying.
/// Sent     n(S(H) + ceil(log2 L)) by leaders: n for each child and the parent within the host; the
///          leaders' all-reduce.
/// Domain   any hosts, any count.
/// Order    one tree, so ranks agree bit for bit; hosts' ranks need not be neighbours, so op must
///          be commutative.
/// Scratch  that of the parts.
/// Source   Husbands & Hoe, "MPI-StarT: Delivering Network Performance to Numerical Applications",
///          SC 1998.
Schedule generate(const Problem& p) {
  return all_reduce_by_leaders(p, all_reduce_recursive_multiplying, "leaders");
}

Cost cost(const Problem& p) {
  return all_reduce_by_leaders_cost(p, all_reduce_recursive_multiplying);
}

}  // namespace

extern const Row all_reduce_leaders{.collective = Collective::all_reduce,
                                    .name = "leaders",
                                    .place = 12,
                                    .generate = generate,
                                    .cost = cost,
                                    .hierarchical = true,
                                    .rounds = "2 ceil(log2 L) within, S(H) across",
                                    .sent = "n(S(H) + ceil(log2 L)) by leaders",
                                    .source = "Husbands & Hoe, SC 1998"};

}  // namespace baton::algorithms
