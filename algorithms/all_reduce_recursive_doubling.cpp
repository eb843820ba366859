#include <algorithm>
#include <bit>

#include "baton/schedule.hpp"

namespace baton {

/// Recursive-doubling all-reduce: in round t, groups of 2^t neighbours exchange their sums.
///
/// Let Q be the largest power of two in P. The first 2(P-Q) ranks form pairs; the odd one of a pair
/// hands its vector to the even one beforehand and is handed the result afterwards.
///
/// Rounds   log2 Q, and 2 more where Q < P.
/// Sent     n log2 Q elements, n more by the even rank of a pair; n by the odd one.
/// Domain   any P >= 1, any count.
/// Order    groups are contiguous, the lower one stands on the left on both sides of an exchange:
/// in
///          rank order, the same tree on every rank.
/// Scratch  none but slots of n elements.
/// Source   Thakur, Rabenseifner & Gropp, Optimization of collective communication operations in
///          MPICH, IJHPCA 19(1), 2005.
Schedule all_reduce_recursive_doubling(const Problem& p) {
  ScheduleBuilder exchange(p);
  const Region all = exchange.work();
  const int groups = static_cast<int>(std::bit_floor(static_cast<unsigned>(p.size)));
  const int pairs = p.size - groups;
  const auto first_of = [&](int group) { return std::min(2 * group, group + pairs); };
  const bool paired = p.rank < 2 * pairs, odd = paired && p.rank % 2 == 1;
  const int group = paired ? p.rank / 2 : p.rank - pairs;

  if (odd) exchange.send(p.rank - 1, all);
  if (paired && !odd) exchange.recv_reduce(p.rank + 1, all);
  if (pairs > 0) exchange.end_round();
  for (int distance = 1; distance < groups; distance *= 2) {
    if (!odd) {
      const int partner = first_of(group ^ distance);
      exchange.send(partner, all);
      exchange.recv_reduce(partner, all);
    }
    exchange.end_round();
  }
  if (!odd) exchange.reduced(all);
  if (paired && !odd) exchange.send(p.rank + 1, all);
  if (odd) exchange.recv(p.rank - 1, all);
  return exchange.build("recursive_doubling");
}

Cost all_reduce_recursive_doubling_cost(const Problem& p) {
  const int groups = static_cast<int>(std::bit_floor(static_cast<unsigned>(p.size)));
  const int pairs = p.size - groups;
  const bool paired = p.rank < 2 * pairs, odd = paired && p.rank % 2 == 1;
  Cost cost;
  cost.rounds = ceil_log2(groups) + (pairs > 0 ? 2 : 0);
  cost.sent = odd ? p.count : (ceil_log2(groups) + (paired ? 1 : 0)) * p.count;
  cost.received = cost.sent;
  cost.folded = odd ? 0 : cost.sent;
  return cost;
}

}  // namespace baton
