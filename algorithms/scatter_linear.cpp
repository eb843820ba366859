#include "baton/schedule.hpp"

namespace baton {

/// Linear scatter: the root sends each rank its block in turn.
///
/// Rounds   P-1; depth 1.  Sent by the root: all blocks but its own; received by each other rank:
/// its block. Domain   any P and root, even and uneven counts. Scratch  none. Source   folklore;
/// the reference.
Schedule scatter_linear(const Problem& p) {
  ScheduleBuilder star(p);
  const Chunks block = star.input_blocks();
  if (p.rank == p.root) star.copy(star.output(), block[p.rank]);
  for (int i = 1; i < p.size; ++i) {
    if (p.rank == p.root) star.send(p.rank_after(i), block[p.rank + i]);
    if (p.rank_before(i) == p.root) star.recv(p.root, star.output());
    star.end_round();
  }
  return star.build("linear");
}

Cost scatter_linear_cost(const Problem& p) {
  const std::int64_t own = p.block_count(p.rank);
  Cost cost;
  cost.rounds = p.size - 1;
  cost.depth = p.size > 1 ? 1 : 0;
  cost.sent = p.rank == p.root ? p.total_count() - own : 0;
  cost.received = p.rank == p.root ? 0 : own;
  return cost;
}

}  // namespace baton
