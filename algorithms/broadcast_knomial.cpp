#include <algorithm>

#include "row.hpp"

namespace baton::algorithms {
namespace {

constexpr int radix = 4;

/// The largest power of the radix below `size`; 0 for one rank.
int highest(int size) {
  int d = 1;
  while (d < (size + radix - 1) / radix) d *= radix;
  return size > 1 ? d : 0;
}

/// The length of the longest path down a tree of `size` ranks.
int depth_of(int size) {
  if (size == 1) return 0;
  const int d = highest(size), children = (size - 1) / d;  // of the root, at distances d, 2d, …
  const int below = depth_of(d), last = depth_of(size - children * d);
  return std::max(children > 1 ? 1 + below : below, 1 + last);
}

/// k-nomial broadcast, k = 4: each rank that has the data sends it to the first ranks of the other
/// three quarters of its part, and goes on with the first quarter.
///
/// Half as deep as a binomial tree, for up to one and a half times as many rounds of one port: for
/// networks where messages wait longer than they take to send.
///
/// Rounds   3m + floor((P-1)/4^m), m = ceil(log4 P) - 1; depth at most ceil(log4 P). The depth is
///          the most digits other than 0 of a number below P to the base 4.
/// Sent     nR by the root, R being the rounds. By the rank at distance v from the root: n elements
///          for each v + j 4^i < P, 1 <= j <= 3, for each 4^i that divides v and, except at the
///          root, is below its lowest digit other than 0. Received by each rank but the root: n.
/// Domain   any P, root and count.
/// Scratch  none.
/// Source   folklore; the binomial tree (k = 2): Johnsson & Ho, IEEE Transactions on Computers
///          38(9), 1989.
Schedule generate(const Problem& p) {
  ScheduleBuilder tree(p);
  const int v = p.modulo(p.rank - p.root);
  for (int d = highest(p.size); d > 0; d /= radix) {
    const int digit = v / d % radix;
    for (int j = 1; j < radix; ++j) {
      if (v % d == 0 && digit == j) tree.recv(p.rank_before(j * d), tree.output());
      if (v % (radix * d) == 0 && v + j * d < p.size) tree.send(p.rank_after(j * d), tree.output());
      tree.end_round();
    }
  }
  return tree.build("knomial");
}

Cost cost(const Problem& p) {
  const int v = p.modulo(p.rank - p.root);
  Cost cost;
  if (p.size > 1) {
    const int d = highest(p.size);
    cost.rounds = (p.size - 1) / d;
    for (int below = d; below > 1; below /= radix) cost.rounds += radix - 1;
    cost.depth = depth_of(p.size);
  }
  for (int d = highest(p.size); d > 0; d /= radix) {
    if (v % (radix * d) == 0) cost.sent += std::min(radix - 1, (p.size - 1 - v) / d) * p.count;
  }
  cost.path = cost.rounds * p.count;
  cost.received = v == 0 ? 0 : p.count;
  return cost;
}

}  // namespace

extern const Row broadcast_knomial{
    .collective = Collective::broadcast,
    .name = "knomial",
    .place = 7,
    .generate = generate,
    .cost = cost,
    .rounds = "3m + floor((P-1)/4^m), m = ceil(log4 P) - 1",
    .depth = "at most ceil(log4 P)",
    .sent = "nR by the root",
    .source = "folklore; Johnsson & Ho, IEEE Transactions on Computers 38(9), 1989"};

}  // namespace baton::algorithms
