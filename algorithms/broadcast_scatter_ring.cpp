#include <algorithm>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Scatter-ring broadcast: a binomial scatter of P chunks, then a ring all-gather of what is
/// missing.
///
/// After the scatter the rank at distance v from the root holds its subtree's chunks, and so needs
/// only the first P - h(v) steps of the ring, where h is the size of that subtree; no element
/// reaches a rank twice.
///
/// Rounds   P-1 + ceil(log2 P).
/// Sent     2n(P-1)/P by the root. By rank v: the chunks of its subtree but its own, then n - (the
///          chunks of the subtree of v+1). Received by each rank but the root: n elements.
/// Domain   any P, root and count; chunks may be empty.
/// Scratch  none.
/// Source   Zhou, Marjanovic, Niethammer & Gracia, arXiv:1603.06809, 2016, after Thakur,
///          Rabenseifner & Gropp, IJHPCA 19(1), 2005.
Schedule generate(const Problem& p) {
  ScheduleBuilder ring(p);
  const Chunks chunk = ring.chunks(ring.output(), p.size);
  const int v = p.modulo(p.rank - p.root);

  for (int d = 1 << ceil_log2(p.size) >> 1; d > 0; d /= 2) {  // scatter: chunk[u] for rank u
    if (v % (2 * d) == 0 && v + d < p.size) {
      ring.send(p.rank_after(d), chunk.range(v + d, std::min(d, p.size - v - d)));
    }
    if (v % (2 * d) == d) ring.recv(p.rank_before(d), chunk.range(v, std::min(d, p.size - v)));
    ring.end_round();
  }

  const auto held = [&](int u) { return u == 0 ? p.size : std::min(u & -u, p.size - u); };
  const int sends = p.size - held(p.modulo(v + 1)), receives = p.size - held(v);
  for (int t = 0; t < p.size - 1; ++t) {  // all-gather: pass chunks on until the next has them all
    if (t < sends) ring.send(p.rank_after(1), chunk[v - t]);
    if (t < receives) ring.recv(p.rank_before(1), chunk[v - 1 - t]);
    ring.end_round();
  }
  return ring.build("scatter_ring");
}

Cost cost(const Problem& p) {
  const int v = p.modulo(p.rank - p.root), next = p.modulo(v + 1);
  const auto subtree = [&](int u) {  // elements of the chunks of u's subtree
    const int end = u == 0 ? p.size : std::min(u + (u & -u), p.size);
    return chunk_offset(p.count, p.size, end) - chunk_offset(p.count, p.size, u);
  };
  Cost cost;
  if (p.size == 1) return cost;
  cost.rounds = ceil_log2(p.size) + p.size - 1;
  cost.sent = subtree(v) - chunk_count(p.count, p.size, v) + p.count - subtree(next);
  cost.received = v == 0 ? 0 : p.count;
  return cost;
}

}  // namespace

extern const Row broadcast_scatter_ring{
    .collective = Collective::broadcast,
    .name = "scatter_ring",
    .place = 4,
    .generate = generate,
    .cost = cost,
    .rounds = "P-1 + ceil(log2 P)",
    .sent = "2n(P-1)/P by the root",
    .source = "Zhou, Marjanovic, Niethammer & Gracia, arXiv:1603.06809, 2016"};

}  // namespace baton::algorithms
