#include <algorithm>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Binomial broadcast: in every round each rank that has the data sends it half as far as before.
///
/// Rounds   ceil(log2 P).
/// Sent     n ceil(log2 P) by the root. By the rank at distance v from the root: n elements for
///          each power of two d with d | v, d < P-v and, except at the root, d below the lowest set
///          bit of v. Received by each rank but the root: n.
/// Domain   any P, root and count.
/// Scratch  none.
/// Source   Johnsson & Ho, IEEE Transactions on Computers 38(9), 1989.
Schedule generate(const Problem& p) {
  ScheduleBuilder tree(p);
  const int v = p.modulo(p.rank - p.root);
  for (int d = 1 << ceil_log2(p.size) >> 1; d > 0; d /= 2) {
    if (v % (2 * d) == 0 && v + d < p.size) tree.send(p.rank_after(d), tree.output());
    if (v % (2 * d) == d) tree.recv(p.rank_before(d), tree.output());
    tree.end_round();
  }
  return tree.build("binomial");
}

Cost cost(const Problem& p) {
  const int v = p.modulo(p.rank - p.root);
  const int subtree = v == 0 ? p.size : std::min(v & -v, p.size - v);  // ranks v … v + subtree - 1
  Cost cost;
  cost.rounds = ceil_log2(p.size);
  cost.sent = ceil_log2(subtree) * p.count;
  cost.received = v == 0 ? 0 : p.count;
  return cost;
}

}  // namespace

extern const Row broadcast_binomial{
    .collective = Collective::broadcast,
    .name = "binomial",
    .place = 2,
    .generate = generate,
    .cost = cost,
    .rounds = "ceil(log2 P)",
    .sent = "n ceil(log2 P) by the root",
    .source = "Johnsson & Ho, IEEE Transactions on Computers 38(9), 1989"};

}  // namespace baton::algorithms
