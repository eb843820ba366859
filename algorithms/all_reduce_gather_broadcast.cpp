#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Gather-broadcast all-reduce, the reference: every rank sends its vector to rank 0, which folds
/// them as they arrive and sends the result to each.
///
/// Rounds   2(P-1).
/// Sent     (P-1)n by rank 0, n elements by every other rank.
/// Domain   any P >= 1, any count.
/// Order    ((0 + 1) + 2) + …, in rank order, at rank 0 only.
/// Scratch  none.
/// Source   textbook.
Schedule generate(const Problem& p) {
  ScheduleBuilder star(p);
  const Region all = star.work();
  for (int r = 1; r < p.size; ++r) {  // gather
    if (p.rank == 0) star.recv_reduce(r, all);
    if (p.rank == r) star.send(0, all);
    star.end_round();
  }
  if (p.rank == 0) star.reduced(all);
  for (int r = 1; r < p.size; ++r) {  // broadcast
    if (p.rank == 0) star.send(r, all);
    if (p.rank == r) star.recv(0, all);
    star.end_round();
  }
  return star.build("gather_broadcast");
}

Cost cost(const Problem& p) {
  Cost cost;
  cost.rounds = 2 * (p.size - 1);
  cost.path = cost.rounds * p.count;
  cost.sent = p.rank == 0 ? (p.size - 1) * p.count : p.count;
  cost.received = cost.sent;
  cost.folded = p.rank == 0 ? cost.received : 0;
  return cost;
}

}  // namespace

extern const Row all_reduce_gather_broadcast{.collective = Collective::all_reduce,
                                             .name = "gather_broadcast",
                                             .place = 1,
                                             .generate = generate,
                                             .cost = cost,
                                             .ordered = true,
                                             .rounds = "2(P-1)",
                                             .sent = "(P-1)n by rank 0",
                                             .source = "folklore"};

}  // namespace baton::algorithms
