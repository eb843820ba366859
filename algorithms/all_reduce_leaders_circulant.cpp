#include "leaders.hpp"

namespace baton::algorithms {

extern const Row all_reduce_circulant;  // its part across hosts

namespace {

/// All-reduce by leaders for long vectors: each host's ranks reduce to the lowest of them by a
/// binomial tree, the leaders of the H hosts all-reduce on a circulant graph, and broadcast by a
/// binomial tree. About 2n(H-1)/H elements pass each host's link.
///
/// Rounds   2 ceil(log2 L) within, 2 ceil(log2 H) across, L being the ranks of the largest host.
/// Sent     2n(H-1)/H + n ceil(log2 L) by leaders, about: n for each child and the parent within
///          the host; the leaders' all-reduce.
/// Domain   any hosts, any count.
/// Order    one tree for each chunk, so ranks agree bit for bit; hosts' ranks need not be
///          neighbours, so op must be commutative.
/// Scratch  that of the parts.
/// Source   Husbands & Hoe, "MPI-StarT: Delivering Network Performance to Numerical Applications",
///          SC 1998; the part across: Träff, arXiv:2410.14234, 2024.
Schedule generate(const Problem& p) {
  return all_reduce_by_leaders(p, all_reduce_circulant, "leaders_circulant");
}

Cost cost(const Problem& p) { return all_reduce_by_leaders_cost(p, all_reduce_circulant); }

}  // namespace

extern const Row all_reduce_leaders_circulant{
    .collective = Collective::all_reduce,
    .name = "leaders_circulant",
    .place = 13,
    .generate = generate,
    .cost = cost,
    .hierarchical = true,
    .rounds = "2 ceil(log2 L) within, 2 ceil(log2 H) across",
    .sent = "2n(H-1)/H + n ceil(log2 L) by leaders",
    .source = "Husbands & Hoe, SC 1998; Träff, arXiv:2410.14234, 2024"};

}  // namespace baton::algorithms
