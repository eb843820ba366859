#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Ring all-reduce: reduce-scatter, then all-gather, round one ring.
///
/// Rounds   2(P-1).
/// Sent     2n(P-1)/P elements, about. Exactly, by rank r: 2n - |c[r+1]| - |c[r+2]|.
/// Domain   any P >= 1, any count; chunks may be empty.
/// Order    chunk c folds from rank c onward, round the ring, once, so ranks agree bit for bit; op
///          must be commutative.
/// Scratch  none but slots of one chunk.
/// Source   Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
///          JPDC 69(2), 2009.
Schedule generate(const Problem& p) {
  ScheduleBuilder ring(p);
  const Chunks chunk = ring.chunks(p.size);
  const int next = p.rank_after(1), previous = p.rank_before(1);
  for (int t = 0; t < p.size - 1; ++t) {  // reduce-scatter: pass partial sums on
    ring.send(next, chunk[p.rank - t]);
    ring.recv_reduce(previous, chunk[p.rank - t - 1]);
    ring.end_round();
  }
  ring.reduced(chunk[p.rank + 1]);
  for (int t = 0; t < p.size - 1; ++t) {  // all-gather: pass finished chunks on
    ring.send(next, chunk[p.rank + 1 - t]);
    ring.recv(previous, chunk[p.rank - t]);
    ring.end_round();
  }
  return ring.build("ring");
}

Cost cost(const Problem& p) {
  const auto chunk = [&](int i) { return chunk_count(p.count, p.size, p.modulo(i)); };
  Cost cost;
  cost.rounds = 2 * (p.size - 1);
  cost.sent = 2 * p.count - chunk(p.rank + 1) - chunk(p.rank + 2);
  cost.received = 2 * p.count - chunk(p.rank) - chunk(p.rank + 1);
  cost.folded = p.count - chunk(p.rank);
  return cost;
}

}  // namespace

extern const Row all_reduce_ring{.collective = Collective::all_reduce,
                                 .name = "ring",
                                 .place = 3,
                                 .generate = generate,
                                 .cost = cost,
                                 .neighbors = true,
                                 .rounds = "2(P-1)",
                                 .sent = "2n(P-1)/P",
                                 .source = "Patarasuk & Yuan, JPDC 69(2), 2009"};

}  // namespace baton::algorithms
