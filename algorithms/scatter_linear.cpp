#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Linear scatter: the root sends each rank its block in turn.
///
/// Rounds   P-1; depth 1.
/// Sent     (P-1)n by the root: all blocks but its own. Received by each other rank: its block.
/// Domain   any P and root, even and uneven counts.
/// Scratch  none.
/// Source   folklore; the reference.
Schedule generate(const Problem& p) {
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

Cost cost(const Problem& p) {
  const std::int64_t own = p.block_count(p.rank);
  Cost cost;
  cost.rounds = p.size - 1;
  cost.depth = p.size > 1 ? 1 : 0;
  cost.sent = p.rank == p.root ? p.total_count() - own : 0;
  cost.received = p.rank == p.root ? 0 : own;
  return cost;
}

}  // namespace

extern const Row scatter_linear{.collective = Collective::scatter,
                                .name = "linear",
                                .place = 1,
                                .generate = generate,
                                .cost = cost,
                                .uneven = true,
                                .rounds = "P-1",
                                .depth = "1",
                                .sent = "(P-1)n by the root",
                                .source = "folklore"};

}  // namespace baton::algorithms
