#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Gather-scatter reduce-scatter: every rank sends its vector to rank 0, which folds them as they
/// arrive and sends each its block of the result. The fewest messages of all, for where each costs
/// processor time that ranks share.
///
/// Rounds   2(P-1).
/// Sent     nP elements: all blocks. By rank 0: all blocks but its own.
/// Domain   any P >= 1; any counts, even or not; blocks may be empty.
/// Order    ((0 + 1) + 2) + …, in rank order.
/// Scratch  by rank 0: all blocks but its own.
/// Source   textbook.
Schedule generate(const Problem& p) {
  ScheduleBuilder star(p);
  const Chunks block = star.chunks(p.size);
  const Regions all = block.range(0, p.size);
  for (int r = 1; r < p.size; ++r) {  // gather
    if (p.rank == 0) star.recv_reduce(r, all, Side::right);
    if (p.rank == r) star.send(0, all);
    star.end_round();
  }
  if (p.rank == 0) star.reduced(all);
  for (int r = 1; r < p.size; ++r) {  // scatter
    if (p.rank == 0) star.send(r, block[r]);
    if (p.rank == r) star.recv(0, block[r]);
    star.end_round();
  }
  return star.build("gather_scatter");
}

Cost cost(const Problem& p) {
  const std::int64_t all = p.total_count(), others = all - p.block_count(0);
  Cost cost;
  cost.rounds = 2 * (p.size - 1);
  cost.path = (p.size - 1) * all + others;
  if (p.size == 1) return cost;
  cost.sent = p.rank == 0 ? others : all;
  cost.received = p.rank == 0 ? (p.size - 1) * all : p.block_count(p.rank);
  cost.folded = p.rank == 0 ? cost.received : 0;
  cost.scratch = p.rank == 0 ? others : 0;
  return cost;
}

}  // namespace

extern const Row reduce_scatter_gather_scatter{.collective = Collective::reduce_scatter,
                                               .name = "gather_scatter",
                                               .place = 6,
                                               .generate = generate,
                                               .cost = cost,
                                               .uneven = true,
                                               .ordered = true,
                                               .rounds = "2(P-1)",
                                               .sent = "nP",
                                               .source = "folklore"};

}  // namespace baton::algorithms
