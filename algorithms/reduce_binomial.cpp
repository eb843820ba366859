#include <algorithm>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Binomial reduce: in every round half of the ranks that still hold partial results hand them on,
/// twice as far as before.
///
/// Rounds   ceil(log2 P), +1 if forwarded: see Order.
/// Sent     n elements by each rank but the top of the tree. Received by the rank at distance v
///          from the top: n for each power of two d with d | v, d < P-v and, except for v = 0, d
///          below the lowest set bit of v. Forwarding: n more, from rank 0 to the root.
/// Domain   any P, root and count.
/// Order    each fold joins neighbouring runs of ranks. The top is the root, or rank 0 where the
///          operation does not commute, which forwards the result to the root: rank order.
/// Scratch  n elements on each rank that receives and is not the root, besides slots.
/// Source   Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005.
Schedule generate(const Problem& p) {
  ScheduleBuilder tree(p);
  const int top = p.commutative ? p.root : 0;
  const int v = p.modulo(p.rank - top);
  for (int d = 1; d < p.size; d *= 2) {
    if (v % (2 * d) == d) tree.send(p.rank_before(d), tree.work());
    if (v % (2 * d) == 0 && v + d < p.size) tree.recv_reduce(p.rank_after(d), tree.work());
    tree.end_round();
  }
  if (p.rank == top) tree.reduced(tree.work());
  if (top != p.root) {
    if (p.rank == top) tree.send(p.root, tree.work());
    if (p.rank == p.root) tree.recv(top, tree.work());
  }
  return tree.build("binomial");
}

Cost cost(const Problem& p) {
  const int top = p.commutative ? p.root : 0;
  const int v = p.modulo(p.rank - top);
  const int subtree = v == 0 ? p.size : std::min(v & -v, p.size - v);  // ranks v … v + subtree - 1
  const bool forward = top != p.root;
  Cost cost;
  cost.rounds = ceil_log2(p.size) + forward;
  cost.sent = (v != 0 || forward) ? p.count : 0;
  cost.received = (ceil_log2(subtree) + (forward && p.rank == p.root)) * p.count;
  cost.folded = ceil_log2(subtree) * p.count;
  cost.scratch = subtree > 1 && p.rank != p.root ? p.count : 0;
  return cost;
}

}  // namespace

extern const Row reduce_binomial{.collective = Collective::reduce,
                                 .name = "binomial",
                                 .place = 2,
                                 .generate = generate,
                                 .cost = cost,
                                 .ordered = true,
                                 .rounds = "ceil(log2 P), +1 if forwarded",
                                 .sent = "n",
                                 .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"};

}  // namespace baton::algorithms
