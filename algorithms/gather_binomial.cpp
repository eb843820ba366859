#include <algorithm>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Binomial gather: subtrees double in every round and hand all their blocks to their parent at
/// once.
///
/// Rounds   ceil(log2 P).
/// Sent     at most nP/2. By the rank at distance v from the root, except the root itself: the
///          blocks of its subtree, ranks v … v+h-1, where h is the lowest set bit of v, at most
///          P-v. Received: the same but its own; by the root, all blocks but its own.
/// Domain   any P and root, even and uneven counts.
/// Scratch  what is received, but at the root.
/// Source   Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005.
Schedule generate(const Problem& p) {
  ScheduleBuilder tree(p);
  const Chunks block = tree.output_blocks();
  const int v = p.modulo(p.rank - p.root);
  if (v == 0) tree.copy(block[p.rank], tree.input());

  Regions gathered{tree.input()};  // blocks of the subtree so far, in order of distance
  for (int d = 1; d < p.size; d *= 2) {
    if (v % (2 * d) == d) tree.send(p.rank_before(d), gathered);
    if (v % (2 * d) == 0 && v + d < p.size) {
      const int ranks = std::min(d, p.size - v - d);
      if (v == 0) {
        tree.recv(p.rank_after(d), block.range(p.rank + d, ranks));
      } else {
        std::int64_t elements = 0;
        for (int i = 0; i < ranks; ++i) elements += p.block_count(p.rank_after(d + i));
        gathered.push_back(tree.scratch(elements));
        tree.recv(p.rank_after(d), gathered.back());
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
  for (int i = 1; i < subtree; ++i) cost.received += p.block_count(p.rank_after(i));
  cost.sent = v == 0 ? 0 : p.block_count(p.rank) + cost.received;
  cost.scratch = v == 0 ? 0 : cost.received;
  return cost;
}

}  // namespace

extern const Row gather_binomial{.collective = Collective::gather,
                                 .name = "binomial",
                                 .place = 2,
                                 .generate = generate,
                                 .cost = cost,
                                 .uneven = true,
                                 .rounds = "ceil(log2 P)",
                                 .sent = "at most nP/2",
                                 .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"};

}  // namespace baton::algorithms
