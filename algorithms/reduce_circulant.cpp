#include <algorithm>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Scatter-gather reduce: a circulant reduce-scatter leaves one finished chunk with each rank, and
/// a binomial gather brings them to the root.
///
/// Rank v (counted from the root) finishes chunk v. With s chunks left to it, v … v+s-1, it hands
/// the upper half to the rank that is half of s further, and is left with the lower.
///
/// Rounds   2 ceil(log2 P).
/// Sent     at most 3n/2, most ranks about n. By rank v: n - c[v] elements, then, unless v is the
///          root, c[v] … c[v+h-1], where h is the size of its subtree.
/// Domain   any P, root and count; chunks may be empty.
/// Order    each chunk is folded along the graph; op must be commutative.
/// Scratch  n elements but at the root (unless nothing is received), besides slots.
/// Source   the reduce of Rabenseifner, ICCS 2004, with the reduce-scatter of Träff,
///          arXiv:2410.14234, 2024.
Schedule generate(const Problem& p) {
  ScheduleBuilder graph(p);
  const Chunks chunk = graph.chunks(p.size);
  const int v = p.modulo(p.rank - p.root);

  for (int s = p.size; s > 1;) {  // reduce-scatter
    const int half = (s + 1) / 2;
    graph.send(p.rank_after(half), chunk.range(v + half, s - half));
    graph.recv_reduce(p.rank_before(half), chunk.range(v, s - half));
    graph.end_round();
    s = half;
  }
  graph.reduced(chunk[v]);

  for (int d = 1; d < p.size; d *= 2) {  // gather
    if (v % (2 * d) == d) graph.send(p.rank_before(d), chunk.range(v, std::min(d, p.size - v)));
    if (v % (2 * d) == 0 && v + d < p.size) {
      graph.recv(p.rank_after(d), chunk.range(v + d, std::min(d, p.size - v - d)));
    }
    graph.end_round();
  }
  return graph.build("circulant");
}

Cost cost(const Problem& p) {
  const int v = p.modulo(p.rank - p.root);
  const int subtree = v == 0 ? p.size : std::min(v & -v, p.size - v);
  const auto elements = [&](int first, int n) {  // of n chunks, counted around the ring
    const auto before = [&](int i) {
      return i / p.size * p.count + chunk_offset(p.count, p.size, i % p.size);
    };
    return before(first + n) - before(first);
  };
  Cost cost;
  cost.rounds = 2 * ceil_log2(p.size);
  cost.sent = p.count - elements(v, 1) + (v == 0 ? 0 : elements(v, subtree));
  for (int s = p.size; s > 1; s = (s + 1) / 2) cost.folded += elements(v, s / 2);
  cost.received = cost.folded + elements(v + 1, subtree - 1);
  if (v != 0 && elements(v, p.size / 2) > 0) cost.scratch = p.count;
  return cost;
}

}  // namespace

extern const Row reduce_circulant{
    .collective = Collective::reduce,
    .name = "circulant",
    .place = 4,
    .generate = generate,
    .cost = cost,
    .rounds = "2 ceil(log2 P)",
    .sent = "at most 3n/2",
    .source = "Rabenseifner, ICCS 2004; Träff, arXiv:2410.14234, 2024"};

}  // namespace baton::algorithms
