#include <algorithm>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Scatter-doubling broadcast: a binomial scatter of P chunks, then an all-gather that doubles what
/// each rank holds in every round.
///
/// The partners of the all-gather are v-d and v+d on the ring of ranks, for d = 1, 2, 4, …, rather
/// than v xor d: rank v holds chunks v … v+2d-1 afterwards, whatever P. What a rank holds since the
/// scatter is not sent to it again.
///
/// Rounds   2 ceil(log2 P).
/// Sent     2n(P-1)/P by the root. By the rank at distance v from the root: the chunks of its
///          subtree but its own, then for each d those of chunks v … v+d-1 that rank v-d lacks.
///          Received by each rank but the root: n elements.
/// Domain   any P, root and count; chunks may be empty.
/// Scratch  none.
/// Source   Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005, with the all-gather of Bruck, Ho,
///          Kipnis, Upfal & Weathersby, IEEE TPDS 8(11), 1997.
Schedule generate(const Problem& p) {
  ScheduleBuilder tree(p);
  const Chunks chunk = tree.chunks(tree.output(), p.size);
  const int v = p.modulo(p.rank - p.root);

  for (int d = 1 << ceil_log2(p.size) >> 1; d > 0; d /= 2) {  // scatter: chunk[u] for rank u
    if (v % (2 * d) == 0 && v + d < p.size) {
      tree.send(p.rank_after(d), chunk.range(v + d, std::min(d, p.size - v - d)));
    }
    if (v % (2 * d) == d) tree.recv(p.rank_before(d), chunk.range(v, std::min(d, p.size - v)));
    tree.end_round();
  }

  for (int d = 1; d < p.size; d *= 2) {
    const auto missing = [&](int u) {  // of chunks u + d … u + 2d - 1, those that u lacks
      const int held = u == 0 ? p.size : std::min(u & -u, p.size - u);
      const int begin = std::max(d, held), end = std::min(2 * d, p.size);
      return chunk.range(u + begin, std::max(0, end - begin));
    };
    tree.send(p.rank_before(d), missing(p.modulo(v - d)));
    tree.recv(p.rank_after(d), missing(v));
    tree.end_round();
  }
  return tree.build("scatter_doubling");
}

Cost cost(const Problem& p) {
  const int v = p.modulo(p.rank - p.root);
  const auto before = [&](int i) {  // elements before chunk i, counted around the ring
    return i / p.size * p.count + chunk_offset(p.count, p.size, i % p.size);
  };
  const auto held = [&](int u) { return u == 0 ? p.size : std::min(u & -u, p.size - u); };
  Cost cost;
  cost.rounds = 2 * ceil_log2(p.size);
  cost.sent = before(v + held(v)) - before(v + 1);
  for (int d = 1; d < p.size; d *= 2) {
    const int u = p.modulo(v - d), begin = std::max(d, held(u)), end = std::min(2 * d, p.size);
    if (begin < end) cost.sent += before(u + end) - before(u + begin);
  }
  cost.received = v == 0 ? 0 : p.count;
  return cost;
}

}  // namespace

extern const Row broadcast_scatter_doubling{
    .collective = Collective::broadcast,
    .name = "scatter_doubling",
    .place = 5,
    .generate = generate,
    .cost = cost,
    .rounds = "2 ceil(log2 P)",
    .sent = "2n(P-1)/P by the root",
    .source =
        "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005; Bruck et al., IEEE TPDS 8(11), 1997"};

}  // namespace baton::algorithms
