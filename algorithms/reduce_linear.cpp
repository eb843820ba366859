#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Linear reduce: the root folds in the input of each rank in turn.
///
/// Rounds   P-1.
/// Sent     n elements by each rank but the root. Received by the root: (P-1)n.
/// Domain   any P, root and count.
/// Order    rank order: the root folds ranks root-1 … 0 from the left, then root+1 … P-1 from the
///          right.
/// Scratch  none but slots.
/// Source   folklore; the reference.
Schedule generate(const Problem& p) {
  ScheduleBuilder star(p);
  for (int i = 1; i < p.size; ++i) {
    const int source = i <= p.root ? p.root - i : i;
    if (p.rank == source) star.send(p.root, star.work());
    if (p.rank == p.root) star.recv_reduce(source, star.work());
    star.end_round();
  }
  if (p.rank == p.root) star.reduced(star.work());
  return star.build("linear");
}

Cost cost(const Problem& p) {
  Cost cost;
  cost.rounds = p.size - 1;
  cost.sent = p.rank == p.root ? 0 : p.count;
  cost.received = p.rank == p.root ? (p.size - 1) * p.count : 0;
  cost.folded = cost.received;
  return cost;
}

}  // namespace

extern const Row reduce_linear{.collective = Collective::reduce,
                               .name = "linear",
                               .place = 1,
                               .generate = generate,
                               .cost = cost,
                               .ordered = true,
                               .rounds = "P-1",
                               .sent = "n",
                               .source = "folklore"};

}  // namespace baton::algorithms
