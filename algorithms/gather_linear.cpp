#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Linear gather: the root receives each rank's block in turn, in its place.
///
/// Rounds   P-1; depth 1.
/// Sent     n elements by each rank but the root: its block. Received by the root: all other
///          blocks.
/// Domain   any P and root, even and uneven counts.
/// Scratch  none.
/// Source   folklore; the reference.
Schedule generate(const Problem& p) {
  ScheduleBuilder star(p);
  const Chunks block = star.output_blocks();
  if (p.rank == p.root) star.copy(block[p.rank], star.input());
  for (int i = 1; i < p.size; ++i) {
    if (p.rank_before(i) == p.root) star.send(p.root, star.input());
    if (p.rank == p.root) star.recv(p.rank_after(i), block[p.rank + i]);
    star.end_round();
  }
  return star.build("linear");
}

Cost cost(const Problem& p) {
  const std::int64_t own = p.block_count(p.rank);
  Cost cost;
  cost.rounds = p.size - 1;
  cost.depth = p.size > 1 ? 1 : 0;
  cost.sent = p.rank == p.root ? 0 : own;
  cost.received = p.rank == p.root ? p.total_count() - own : 0;
  return cost;
}

}  // namespace

extern const Row gather_linear{.collective = Collective::gather,
                               .name = "linear",
                               .place = 1,
                               .generate = generate,
                               .cost = cost,
                               .uneven = true,
                               .rounds = "P-1",
                               .depth = "1",
                               .sent = "n",
                               .source = "folklore"};

}  // namespace baton::algorithms
