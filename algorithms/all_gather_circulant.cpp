#include "row.hpp"

namespace baton::algorithms {
namespace {

/// ceil(P / 2^i): how many blocks each rank has when i rounds are left.
int gathered(const Problem& p, int i) { return static_cast<int>((p.size + (1ll << i) - 1) >> i); }

/// Circulant all-gather: what each rank has doubles, or one less, until it is P blocks exactly.
///
/// The skips are P halved and rounded up, again and again: for P = 11, 1, 2, 3, 6. As Bruck's, but
/// no round moves more than half of the blocks, and the rounds are those of the circulant
/// reduce-scatter in reverse.
///
/// Rounds   ceil(log2 P).
/// Sent     (P-1)n elements; for uneven counts, the s' - s blocks from its own on in each round
///          from s to s' blocks.
/// Domain   any P >= 1, any counts, even or not, along any dimension; blocks may be empty.
/// Scratch  none.
/// Source   Träff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms",
///          arXiv:2410.14234, 2024.
Schedule generate(const Problem& p) {
  ScheduleBuilder circulant(p);
  const Chunks block = circulant.output_blocks();
  const int rounds = ceil_log2(p.size);
  for (int i = rounds - 1; i >= 0; --i) {
    const int skip = gathered(p, i + 1);  // blocks skip, …, n of them, follow those at hand
    const int n = gathered(p, i) - skip;
    circulant.send(p.rank_before(skip),
                   skip == 1 ? Regions{circulant.input()} : block.range(p.rank, n));
    circulant.recv(p.rank_after(skip), block.range(p.rank + skip, n));
    if (skip == 1) circulant.copy(block[p.rank], circulant.input());
    circulant.end_round();
  }
  if (p.size == 1) circulant.copy(block[p.rank], circulant.input());
  return circulant.build("circulant");
}

Cost cost(const Problem& p) {
  Cost cost;
  cost.rounds = ceil_log2(p.size);
  cost.received = p.total_count() - p.block_count(p.rank);
  if (!p.uneven()) {
    cost.sent = (p.size - 1) * p.count;
    return cost;
  }
  for (int i = 0; i < cost.rounds; ++i) {
    const int n = gathered(p, i) - gathered(p, i + 1);
    for (int k = 0; k < n; ++k) cost.sent += p.block_count(p.rank_after(k));
  }
  return cost;
}

}  // namespace

extern const Row all_gather_circulant{.collective = Collective::all_gather,
                                      .name = "circulant",
                                      .place = 6,
                                      .generate = generate,
                                      .cost = cost,
                                      .uneven = true,
                                      .rounds = "ceil(log2 P)",
                                      .sent = "(P-1)n",
                                      .source = "Träff, arXiv:2410.14234, 2024"};

}  // namespace baton::algorithms
