#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Linear broadcast: the root sends everything to each rank in turn.
///
/// Rounds   P-1; depth 1.
/// Sent     (P-1)n by the root. Received by each other rank: n.
/// Domain   any P, root and count.
/// Scratch  none.
/// Source   folklore; the reference.
Schedule generate(const Problem& p) {
  ScheduleBuilder star(p);
  for (int i = 1; i < p.size; ++i) {
    if (p.rank == p.root) star.send(p.rank_after(i), star.output());
    if (p.rank_before(i) == p.root) star.recv(p.root, star.output());
    star.end_round();
  }
  return star.build("linear");
}

Cost cost(const Problem& p) {
  Cost cost;
  cost.rounds = p.size - 1;
  cost.depth = p.size > 1 ? 1 : 0;
  cost.sent = p.rank == p.root ? (p.size - 1) * p.count : 0;
  cost.received = p.rank == p.root ? 0 : p.count;
  return cost;
}

}  // namespace

extern const Row broadcast_linear{.collective = Collective::broadcast,
                                  .name = "linear",
                                  .place = 1,
                                  .generate = generate,
                                  .cost = cost,
                                  .rounds = "P-1",
                                  .depth = "1",
                                  .sent = "(P-1)n by the root",
                                  .source = "folklore"};

}  // namespace baton::algorithms
