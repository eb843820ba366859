#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Linear all-gather: each rank sends its block to every other. The reference.
///
/// Rounds   P-1; depth 1.
/// Sent     (P-1)n elements: its block to each other rank.
/// Domain   any P >= 1, any counts, even or not, along any dimension; blocks may be empty.
/// Scratch  none.
/// Source   folklore; the order r + 1, r + 2, … keeps any rank from being everybody's target at
///          once.
Schedule generate(const Problem& p) {
  ScheduleBuilder linear(p);
  const Chunks block = linear.output_blocks();
  for (int k = 1; k < p.size; ++k) {
    linear.send(p.rank_after(k), linear.input());
    linear.recv(p.rank_before(k), block[p.rank - k]);
    linear.end_round();
  }
  linear.copy(block[p.rank], linear.input());
  return linear.build("linear");
}

Cost cost(const Problem& p) {
  const std::int64_t own = p.block_count(p.rank);
  Cost cost;
  cost.rounds = p.size - 1;
  cost.depth = p.size > 1 ? 1 : 0;
  cost.sent = (p.size - 1) * own;
  cost.received = p.total_count() - own;
  return cost;
}

}  // namespace

extern const Row all_gather_linear{.collective = Collective::all_gather,
                                   .name = "linear",
                                   .place = 1,
                                   .generate = generate,
                                   .cost = cost,
                                   .uneven = true,
                                   .rounds = "P-1",
                                   .depth = "1",
                                   .sent = "(P-1)n",
                                   .source = "folklore"};

}  // namespace baton::algorithms
