#include <algorithm>
#include <bit>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Recursive-doubling all-reduce: in round t, groups of 2^t neighbours exchange their sums.
///
/// Let Q be the largest power of two in P. The first 2(P-Q) ranks form pairs; the odd one of a pair
/// hands its vector to the even one beforehand and is handed the result afterwards.
///
/// Rounds   log2 Q, +2 if Q < P.
/// Sent     n log2 Q, +n if Q < P: n more by the even rank of a pair. By the odd one: n elements.
/// Domain   any P >= 1, any count.
/// Order    groups are contiguous, the lower one stands on the left on both sides of an exchange:
///          in rank order, the same tree on every rank.
/// Scratch  none but slots of n elements.
/// Source   Thakur, Rabenseifner & Gropp, Optimization of collective communication operations in
///          MPICH, IJHPCA 19(1), 2005.
Schedule generate(const Problem& p) {
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

Cost cost(const Problem& p) {
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

}  // namespace

extern const Row all_reduce_recursive_doubling{
    .collective = Collective::all_reduce,
    .name = "recursive_doubling",
    .place = 2,
    .generate = generate,
    .cost = cost,
    .ordered = true,
    .rounds = "log2 Q, +2 if Q < P",
    .sent = "n log2 Q, +n if Q < P",
    .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"};

}  // namespace baton::algorithms
