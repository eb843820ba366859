#include <algorithm>

#include "baton/schedule.hpp"

namespace baton {

/// Binomial broadcast: in every round each rank that has the data sends it half as far as before.
///
/// Rounds   ceil(log2 P).  Sent by the rank at distance v from the root: n elements for each power
///          of two d with d | v, d < P-v and, but for the root, d below the lowest set bit of v.
///          Received by each rank but the root: n.
/// Domain   any P, root and count.
/// Scratch  none.
/// Source   Johnsson & Ho, IEEE Transactions on Computers 38(9), 1989.
Schedule broadcast_binomial(const Problem& p) {
  ScheduleBuilder tree(p);
  const int v = p.modulo(p.rank - p.root);
  for (int d = 1 << ceil_log2(p.size) >> 1; d > 0; d /= 2) {
    if (v % (2 * d) == 0 && v + d < p.size) tree.send(p.rank_after(d), tree.output());
    if (v % (2 * d) == d) tree.recv(p.rank_before(d), tree.output());
    tree.end_round();
  }
  return tree.build("binomial");
}

Cost broadcast_binomial_cost(const Problem& p) {
  const int v = p.modulo(p.rank - p.root);
  const int subtree = v == 0 ? p.size : std::min(v & -v, p.size - v);  // ranks v … v + subtree - 1
  Cost cost;
  cost.rounds = ceil_log2(p.size);
  cost.sent = ceil_log2(subtree) * p.count;
  cost.received = v == 0 ? 0 : p.count;
  return cost;
}

}  // namespace baton
