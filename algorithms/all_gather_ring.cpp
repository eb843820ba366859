#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Ring all-gather: each rank hands on what it received, so every block travels once round the
/// ring.
///
/// Rounds   P-1.
/// Sent     (P-1)n elements. Exactly, by rank r: all blocks but b[r+1].
/// Domain   any P >= 1, any counts, even or not, along any dimension; blocks may be empty.
/// Scratch  none.
/// Source   Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in
///          MPICH", IJHPCA 19(1), 2005.
Schedule generate(const Problem& p) {
  ScheduleBuilder ring(p);
  const Chunks block = ring.output_blocks();
  const int next = p.rank_after(1), prev = p.rank_before(1);
  for (int t = 0; t < p.size - 1; ++t) {
    ring.send(next, t == 0 ? ring.input() : block[p.rank - t]);
    ring.recv(prev, block[p.rank - t - 1]);
    ring.end_round();
  }
  ring.copy(block[p.rank], ring.input());
  return ring.build("ring");
}

Cost cost(const Problem& p) {
  const std::int64_t total = p.total_count();
  Cost cost;
  cost.rounds = p.size - 1;
  cost.sent = total - p.block_count(p.rank_after(1));
  cost.received = total - p.block_count(p.rank);
  return cost;
}

}  // namespace

extern const Row all_gather_ring{.collective = Collective::all_gather,
                                 .name = "ring",
                                 .place = 2,
                                 .generate = generate,
                                 .cost = cost,
                                 .uneven = true,
                                 .neighbors = true,
                                 .rounds = "P-1",
                                 .sent = "(P-1)n",
                                 .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"};

}  // namespace baton::algorithms
