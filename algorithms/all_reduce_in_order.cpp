#include "row.hpp"

namespace baton::algorithms {
namespace {

/// The k-th skip: P halved k times, rounded up.
int skip(int ranks, int k) { return (ranks + (1 << k) - 1) >> k; }

/// All-reduce in rank order at the volume of a ring, for any P: pairwise exchange as the
/// reduce-scatter, then an all-gather on a circulant graph.
///
/// Rank r hears from r - 1, r - 2, … round the circle. What comes from lower ranks is put on the
/// left of its own contribution; what comes from higher ones gathers, leftward too, in a second
/// sum, which is appended on the right when all is there. Nobody waits for a turn.
///
/// Rounds   P-1 + ceil(log2 P).
/// Sent     2n(P-1)/P elements, about. Exactly, by rank r: n - |c[r]|, then |c[r], …, c[r + s[k-1]
///          - s[k] - 1]| in round k of the all-gather, where s[k] = ceil(P / 2^k).
/// Domain   any P >= 1, any count; chunks may be empty.
/// Order    (0 + (1 + … (r-1 + r))) + (r+1 + (… + P-1)) for chunk r, at rank r only: in rank order.
/// Scratch  one chunk, except on the last rank.
/// Source   pairwise exchange: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005; all-gather: Träff,
///          arXiv:2410.14234, 2024; the second sum is ours.
Schedule generate(const Problem& p) {
  ScheduleBuilder order(p);
  const Chunks chunk = order.chunks(p.size);
  const Region lower = chunk[p.rank];
  const bool last = p.rank == p.size - 1;
  const Region higher = order.scratch(last ? 0 : lower.length());
  for (int t = 1; t < p.size; ++t) {  // reduce-scatter
    const int to = p.rank_after(t), from = p.rank_before(t);
    order.send(to, chunk[to]);
    if (from == p.size - 1) {
      order.recv(from, higher);
    } else {
      order.recv_reduce(from, from < p.rank ? lower : higher, Side::left);
    }
    order.end_round();
  }
  if (!last) order.fold(lower, lower, higher);
  order.reduced(lower);
  for (int k = ceil_log2(p.size); k > 0; --k) {  // all-gather
    const int near = skip(p.size, k), far = skip(p.size, k - 1) - near;
    order.send(p.rank_before(near), chunk.range(p.rank, far));
    order.recv(p.rank_after(near), chunk.range(p.rank + near, far));
    order.end_round();
  }
  return order.build("in_order");
}

Cost cost(const Problem& p) {
  const auto before = [&](int i) {  // elements before chunk i, counted round the circle
    return i / p.size * p.count + chunk_offset(p.count, p.size, i % p.size);
  };
  const std::int64_t own = chunk_count(p.count, p.size, p.rank);
  Cost cost;
  cost.rounds = p.size - 1 + ceil_log2(p.size);
  cost.sent = p.count - own;
  for (int k = 1; k <= ceil_log2(p.size); ++k) {
    const int far = skip(p.size, k - 1) - skip(p.size, k);
    cost.sent += before(p.rank + far) - before(p.rank);
  }
  cost.received = (p.size - 1) * own + p.count - own;
  cost.folded = (p.size - 1) * own;
  cost.scratch = p.rank == p.size - 1 ? 0 : own;
  return cost;
}

}  // namespace

extern const Row all_reduce_in_order{
    .collective = Collective::all_reduce,
    .name = "in_order",
    .place = 8,
    .generate = generate,
    .cost = cost,
    .ordered = true,
    .rounds = "P-1 + ceil(log2 P)",
    .sent = "2n(P-1)/P",
    .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005; Träff, arXiv:2410.14234, 2024"};

}  // namespace baton::algorithms
