#include <algorithm>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Bruck's all-gather: having the d blocks from its own on, each rank gets the next d from rank r +
/// d.
///
/// Blocks go straight to their places in the output, which wraps, so nothing is rotated in the end.
///
/// Rounds   ceil(log2 P).
/// Sent     (P-1)n elements; for uneven counts, the min(d, P - d) blocks from its own on in each
///          round d = 1, 2, 4, …
/// Domain   any P >= 1, any counts, even or not, along any dimension; blocks may be empty.
/// Scratch  none.
/// Source   Bruck, Ho, Kipnis, Upfal & Weathersby, "Efficient Algorithms for All-to-All
///          Communications in Multiport Message-Passing Systems", IEEE TPDS 8(11), 1997.
Schedule generate(const Problem& p) {
  ScheduleBuilder bruck(p);
  const Chunks block = bruck.output_blocks();
  for (int d = 1; d < p.size; d *= 2) {
    const int n = std::min(d, p.size - d);
    bruck.send(p.rank_before(d), d == 1 ? Regions{bruck.input()} : block.range(p.rank, n));
    bruck.recv(p.rank_after(d), block.range(p.rank + d, n));
    if (d == 1) bruck.copy(block[p.rank], bruck.input());
    bruck.end_round();
  }
  if (p.size == 1) bruck.copy(block[p.rank], bruck.input());
  return bruck.build("bruck");
}

Cost cost(const Problem& p) {
  Cost cost;
  cost.rounds = ceil_log2(p.size);
  cost.received = p.total_count() - p.block_count(p.rank);
  if (!p.uneven()) {
    cost.sent = (p.size - 1) * p.count;
    return cost;
  }
  for (int d = 1; d < p.size; d *= 2) {
    for (int i = 0; i < std::min(d, p.size - d); ++i) cost.sent += p.block_count(p.rank_after(i));
  }
  return cost;
}

}  // namespace

extern const Row all_gather_bruck{.collective = Collective::all_gather,
                                  .name = "bruck",
                                  .place = 4,
                                  .generate = generate,
                                  .cost = cost,
                                  .uneven = true,
                                  .rounds = "ceil(log2 P)",
                                  .sent = "(P-1)n",
                                  .source = "Bruck et al., IEEE TPDS 8(11), 1997"};

}  // namespace baton::algorithms
