#include <algorithm>

#include "row.hpp"

namespace baton::algorithms {
namespace {

std::int64_t largest_block(const Problem& p) {
  if (!p.input_blocks) return p.count;
  return *std::max_element(p.input_blocks->counts.begin(), p.input_blocks->counts.end());
}

/// Partial sums that are passed on; two buffers take turns to hold them.
int holding_buffers(const Problem& p) { return std::clamp(p.size - 2, 0, 2); }

/// Ring reduce-scatter: the partial sum of block b starts at rank b + 1 and goes once round the
/// ring.
///
/// Rounds   P-1.
/// Sent     (P-1)n elements: all blocks but its own. Received: all blocks but b[r-1].
/// Domain   any P >= 1, any count, uneven counts.
/// Order    block b folds from rank b + 1 onward, round the ring; op must be commutative.
/// Scratch  two of the largest block, one for P = 3.
/// Source   Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
///          JPDC 69(2), 2009: its first phase.
Schedule generate(const Problem& p) {
  ScheduleBuilder ring(p);
  const Chunks input = ring.input_blocks();
  const Region own = ring.chunks(p.size)[p.rank];
  Region held[2];
  for (int i = 0; i < holding_buffers(p); ++i) held[i] = ring.scratch(largest_block(p));
  const int next = p.rank_after(1), previous = p.rank_before(1);
  const Side arriving = previous < p.rank ? Side::left : Side::right;

  Region partial = input[p.rank - 1];
  for (int t = 0; t < p.size - 1; ++t) {
    ring.send(next, partial);
    if (t < p.size - 2) {
      const Region mine = input[p.rank - t - 2];
      partial = held[t % 2];
      partial.block = mine.length();
      ring.recv_reduce(previous, partial, mine, arriving);
    } else {
      ring.recv_reduce(previous, own, arriving);
    }
    ring.end_round();
  }
  ring.reduced(own);
  return ring.build("ring");
}

Cost cost(const Problem& p) {
  Cost cost;
  cost.rounds = p.size - 1;
  cost.sent = p.total_count() - p.count;
  cost.received = p.total_count() - p.block_count(p.rank_before(1));
  cost.folded = cost.received;
  cost.scratch = holding_buffers(p) * largest_block(p);
  return cost;
}

}  // namespace

extern const Row reduce_scatter_ring{.collective = Collective::reduce_scatter,
                                     .name = "ring",
                                     .place = 2,
                                     .generate = generate,
                                     .cost = cost,
                                     .uneven = true,
                                     .neighbors = true,
                                     .rounds = "P-1",
                                     .sent = "(P-1)n",
                                     .source = "Patarasuk & Yuan, JPDC 69(2), 2009"};

}  // namespace baton::algorithms
