#include "baton/schedule.hpp"

namespace baton {

/// Linear all-gather: each rank sends its block to every other. The reference.
///
/// Rounds   P - 1; depth 1.  Sent by rank r: (P - 1) |b[r]| elements.
/// Domain   any P >= 1, any counts, even or not, along any dimension; blocks may be empty.
/// Scratch  none.
/// Source   folklore; the order r + 1, r + 2, … keeps any rank from being everybody's target at
/// once.
Schedule all_gather_linear(const Problem& p) {
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

Cost all_gather_linear_cost(const Problem& p) {
  const std::int64_t own = p.block_count(p.rank);
  Cost cost;
  cost.rounds = p.size - 1;
  cost.depth = p.size > 1 ? 1 : 0;
  cost.sent = (p.size - 1) * own;
  cost.received = p.total_count() - own;
  return cost;
}

}  // namespace baton
