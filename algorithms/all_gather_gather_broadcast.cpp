#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Gather-broadcast all-gather: every rank sends its block to rank 0, which sends all of them to
/// each. The fewest messages of all, for where each costs processor time that ranks share.
///
/// Rounds   2(P-1); depth 2.
/// Sent     nP(P-1) by rank 0: P-1 times all blocks. By every other rank: its block.
/// Domain   any P >= 1; any counts, even or not; blocks may be empty.
/// Scratch  none.
/// Source   textbook.
Schedule generate(const Problem& p) {
  ScheduleBuilder star(p);
  const Chunks block = star.output_blocks();
  const Regions all = block.range(0, p.size);
  if (p.rank == 0) star.copy(block[0], star.input());
  for (int r = 1; r < p.size; ++r) {  // gather
    if (p.rank == 0) star.recv(r, block[r]);
    if (p.rank == r) star.send(0, star.input());
    star.end_round();
  }
  for (int r = 1; r < p.size; ++r) {  // broadcast
    if (p.rank == 0) star.send(r, all);
    if (p.rank == r) star.recv(0, all);
    star.end_round();
  }
  return star.build("gather_broadcast");
}

Cost cost(const Problem& p) {
  const std::int64_t all = p.total_count(), gathered = all - p.block_count(0);
  Cost cost;
  cost.rounds = 2 * (p.size - 1);
  cost.depth = p.size > 1 ? 2 : 0;
  cost.path = gathered + (p.size - 1) * all;
  cost.sent = p.rank == 0 ? (p.size - 1) * all : p.block_count(p.rank);
  cost.received = p.size == 1 ? 0 : p.rank == 0 ? gathered : all;
  return cost;
}

}  // namespace

extern const Row all_gather_gather_broadcast{.collective = Collective::all_gather,
                                             .name = "gather_broadcast",
                                             .place = 7,
                                             .generate = generate,
                                             .cost = cost,
                                             .uneven = true,
                                             .rounds = "2(P-1)",
                                             .depth = "2",
                                             .sent = "nP(P-1) by rank 0",
                                             .source = "folklore"};

}  // namespace baton::algorithms
