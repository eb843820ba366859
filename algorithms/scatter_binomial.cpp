#include <algorithm>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Binomial scatter: whoever holds the blocks of a subtree hands the further half of it on, at
/// once.
///
/// Rounds   ceil(log2 P).
/// Sent     (P-1)n by the root: all blocks but its own. By the rank at distance v from the root:
///          the blocks of its subtree but its own, ranks v+1 … v+h-1, where h is the lowest set bit
///          of v, at most P-v. Received: the same and its own.
/// Domain   any P and root, even and uneven counts.
/// Scratch  what is sent, but at the root.
/// Source   Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005.
Schedule generate(const Problem& p) {
  ScheduleBuilder tree(p);
  const Chunks block = tree.input_blocks();
  const int v = p.modulo(p.rank - p.root);
  if (v == 0) tree.copy(tree.output(), block[p.rank]);

  Regions held;  // the own block, then those of the child at distance 1, 2, 4, …
  for (int d = 1 << ceil_log2(p.size) >> 1; d > 0; d /= 2) {
    if (v % (2 * d) == d) {
      const int subtree = std::min(d, p.size - v);
      held.push_back(tree.output());
      for (int c = 1; c < subtree; c *= 2) {
        std::int64_t elements = 0;
        for (int i = c; i < std::min(2 * c, subtree); ++i)
          elements += p.block_count(p.rank_after(i));
        held.push_back(tree.scratch(elements));
      }
      tree.recv(p.rank_before(d), held);
    }
    if (v % (2 * d) == 0 && v + d < p.size) {
      if (v == 0) {
        tree.send(p.rank_after(d), block.range(p.rank + d, std::min(d, p.size - d)));
      } else {
        const auto child = static_cast<std::size_t>(ceil_log2(2 * d));
        tree.send(p.rank_after(d), held[child]);
      }
    }
    tree.end_round();
  }
  return tree.build("binomial");
}

Cost cost(const Problem& p) {
  const int v = p.modulo(p.rank - p.root);
  const int subtree = v == 0 ? p.size : std::min(v & -v, p.size - v);
  Cost cost;
  cost.rounds = ceil_log2(p.size);
  for (int i = 1; i < subtree; ++i) cost.sent += p.block_count(p.rank_after(i));
  cost.received = v == 0 ? 0 : p.block_count(p.rank) + cost.sent;
  cost.scratch = v == 0 ? 0 : cost.sent;
  return cost;
}

}  // namespace

extern const Row scatter_binomial{.collective = Collective::scatter,
                                  .name = "binomial",
                                  .place = 2,
                                  .generate = generate,
                                  .cost = cost,
                                  .uneven = true,
                                  .rounds = "ceil(log2 P)",
                                  .sent = "(P-1)n by the root",
                                  .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"};

}  // namespace baton::algorithms
