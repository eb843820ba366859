#include "row.hpp"

namespace baton::algorithms {
namespace {

/// The k-th skip: P halved k times, rounded up.
int skip(int ranks, int k) { return (ranks + (1 << k) - 1) >> k; }

/// Circulant all-reduce: reduce-scatter on a circulant graph, then all-gather on it backwards.
///
/// Seen from rank r, chunk r + i is i chunks away. Round k leaves partial sums of the chunks nearer
/// than skip s[k] = ceil(P / 2^k): the others are sent s[k] ranks ahead, where they are that much
/// nearer. In the end each rank has finished its own chunk.
///
/// Rounds   2 ceil(log2 P).
/// Sent     2n(P-1)/P elements, about, which is optimal. Exactly, by rank r: n - |c[r]|, then
///          |c[r], …, c[r + s[k-1] - s[k] - 1]| in round k of the all-gather.
/// Domain   any P >= 1, any count; chunks may be empty.
/// Order    each chunk is folded along one tree, so ranks agree bit for bit, but that tree starts
///          at the chunk's rank; op must be commutative.
/// Scratch  none but slots of n/2 elements.
/// Source   Träff, Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms,
///          arXiv:2410.14234, 2024.
Schedule generate(const Problem& p) {
  ScheduleBuilder graph(p);
  const Chunks chunk = graph.chunks(p.size);
  const int rounds = ceil_log2(p.size);
  for (int k = 1; k <= rounds; ++k) {  // reduce-scatter
    const int near = skip(p.size, k), far = skip(p.size, k - 1) - near;
    graph.send(p.rank_after(near), chunk.range(p.rank + near, far));
    graph.recv_reduce(p.rank_before(near), chunk.range(p.rank, far));
    graph.end_round();
  }
  graph.reduced(chunk[p.rank]);
  for (int k = rounds; k > 0; --k) {  // all-gather
    const int near = skip(p.size, k), far = skip(p.size, k - 1) - near;
    graph.send(p.rank_before(near), chunk.range(p.rank, far));
    graph.recv(p.rank_after(near), chunk.range(p.rank + near, far));
    graph.end_round();
  }
  return graph.build("circulant");
}

Cost cost(const Problem& p) {
  const auto before = [&](int i) {  // elements before chunk i, counted round the circle
    return i / p.size * p.count + chunk_offset(p.count, p.size, i % p.size);
  };
  Cost cost;
  cost.rounds = 2 * ceil_log2(p.size);
  cost.sent = p.count - chunk_count(p.count, p.size, p.rank);
  for (int k = 1; k <= ceil_log2(p.size); ++k) {
    const int far = skip(p.size, k - 1) - skip(p.size, k);
    cost.folded += before(p.rank + far) - before(p.rank);
  }
  cost.sent += cost.folded;
  cost.received = cost.sent;
  return cost;
}

}  // namespace

extern const Row all_reduce_circulant{.collective = Collective::all_reduce,
                                      .name = "circulant",
                                      .place = 7,
                                      .generate = generate,
                                      .cost = cost,
                                      .rounds = "2 ceil(log2 P)",
                                      .sent = "2n(P-1)/P",
                                      .source = "Träff, arXiv:2410.14234, 2024"};

}  // namespace baton::algorithms
