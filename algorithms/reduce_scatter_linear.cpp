#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Pairwise-exchange reduce-scatter, the reference: every rank sends each block straight to its
/// owner.
///
/// Rank r hears from r - 1, r - 2, … round the circle. What comes from lower ranks is put on the
/// left of its own contribution; what comes from higher ones gathers, leftward too, in a second
/// sum, which is appended on the right when all is there.
///
/// Rounds   P-1.
/// Sent     (P-1)n elements: all blocks but its own. Received: P-1 times its own block.
/// Domain   any P >= 1, any count, uneven counts.
/// Order    (0 + (1 + … (r-1 + r))) + (r+1 + (… + P-1)): in rank order.
/// Scratch  one block, except on the last rank.
/// Source   Thakur, Rabenseifner & Gropp, Optimization of collective communication operations in
///          MPICH, IJHPCA 19(1), 2005; the second sum is ours.
Schedule generate(const Problem& p) {
  ScheduleBuilder pairwise(p);
  const Chunks input = pairwise.input_blocks();
  const Region lower = pairwise.chunks(p.size)[p.rank];
  const bool last = p.rank == p.size - 1;
  const Region higher = pairwise.scratch(last ? 0 : p.count);
  for (int t = 1; t < p.size; ++t) {
    const int to = p.rank_after(t), from = p.rank_before(t);
    pairwise.send(to, input[to]);
    if (from == p.size - 1) {
      pairwise.recv(from, higher);
    } else {
      pairwise.recv_reduce(from, from < p.rank ? lower : higher, Side::left);
    }
    pairwise.end_round();
  }
  if (!last) pairwise.fold(lower, lower, higher);
  pairwise.reduced(lower);
  return pairwise.build("linear");
}

Cost cost(const Problem& p) {
  Cost cost;
  cost.rounds = p.size - 1;
  cost.sent = p.total_count() - p.count;
  cost.received = (p.size - 1) * p.count;
  cost.folded = cost.received;
  cost.scratch = p.rank == p.size - 1 ? 0 : p.count;
  return cost;
}

}  // namespace

extern const Row reduce_scatter_linear{
    .collective = Collective::reduce_scatter,
    .name = "linear",
    .place = 1,
    .generate = generate,
    .cost = cost,
    .uneven = true,
    .ordered = true,
    .rounds = "P-1",
    .sent = "(P-1)n",
    .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"};

}  // namespace baton::algorithms
