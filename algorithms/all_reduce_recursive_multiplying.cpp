#include <vector>

#include "algorithms.hpp"
#include "exchange.hpp"

namespace baton {
namespace {

/// The factors of P: fours, at most one two, and odd primes, ascending but for the two.
std::vector<int> radices(int size) {
  std::vector<int> factors;
  for (int k = 4; size > 1; ++k) {
    while (size % k == 0) {
      factors.push_back(k);
      size /= k;
    }
    if (k == 4) {
      for (const int small : {2, 3}) {
        for (; size % small == 0; size /= small) factors.push_back(small);
      }
    }
  }
  return factors;
}

}  // namespace

/// Recursive-multiplying all-reduce: recursive doubling with larger radices. In each level, groups
/// of k ranks, one from each of k blocks of neighbours, exchange their sums, all at once.
///
/// The radices are the factors of P: 4 as long as that divides it, then 2 and odd primes. So there
/// are few levels, each of one latency, whatever P is made of; a prime P takes one.
///
/// Rounds   the sum of k - 1 over all levels; depth: the number of levels.
/// Sent     n elements a round.
/// Domain   any P >= 1, any count.
/// Order    blocks of neighbours, left to right, the same tree on every rank: rank order.
/// Scratch  n elements a round.
/// Source   Ruefenacht, Bull & Booth, "Generalisation of recursive doubling for AllReduce: Now with
///          simulation", Parallel Computing 69, 2017.
Schedule all_reduce_recursive_multiplying(const Problem& p) {
  ScheduleBuilder exchange(p);
  int stride = 1;
  for (const int radix : radices(p.size)) {
    exchange_and_fold(exchange, p, stride, radix);
    stride *= radix;
  }
  exchange.reduced(exchange.work());
  return exchange.build("recursive_multiplying");
}

Cost all_reduce_recursive_multiplying_cost(const Problem& p) {
  Cost cost;
  for (const int radix : radices(p.size)) {
    cost.rounds += radix - 1;
    ++cost.depth;
  }
  cost.sent = cost.received = cost.folded = cost.scratch = cost.rounds * p.count;
  return cost;
}

}  // namespace baton
