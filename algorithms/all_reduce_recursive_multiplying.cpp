#include <vector>

#include "exchange.hpp"
#include "row.hpp"

namespace baton::algorithms {
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

/// Recursive-multiplying all-reduce: recursive doubling with larger radices. In each level, groups
/// of k ranks, one from each of k blocks of neighbours, exchange their sums, all at once.
///
/// The radices are the factors of P: 4 as long as that divides it, then 2 and odd primes. So there
/// are few levels, each of one latency, whatever P is made of; a prime P takes one.
///
/// Rounds   S(P); depth F(P): S(P) is the sum of k-1 over the factors k of P, F(P) is the number of
///          factors.
/// Sent     n S(P) elements: n a round.
/// Domain   any P >= 1, any count.
/// Order    blocks of neighbours, left to right, the same tree on every rank: rank order.
/// Scratch  n elements a round.
/// Source   Ruefenacht, Bull & Booth, "Generalisation of recursive doubling for AllReduce: Now with
///          simulation", Parallel Computing 69, 2017.
Schedule generate(const Problem& p) {
  ScheduleBuilder exchange(p);
  int stride = 1;
  for (const int radix : radices(p.size)) {
    exchange_and_fold(exchange, p, stride, radix);
    stride *= radix;
  }
  exchange.reduced(exchange.work());
  return exchange.build("recursive_multiplying");
}

Cost cost(const Problem& p) {
  Cost cost;
  for (const int radix : radices(p.size)) {
    cost.rounds += radix - 1;
    ++cost.depth;
  }
  cost.sent = cost.received = cost.folded = cost.scratch = cost.rounds * p.count;
  return cost;
}

}  // namespace

extern const Row all_reduce_recursive_multiplying{
    .collective = Collective::all_reduce,
    .name = "recursive_multiplying",
    .place = 9,
    .generate = generate,
    .cost = cost,
    .ordered = true,
    .rounds = "S(P)",
    .depth = "F(P)",
    .sent = "n S(P)",
    .source = "Ruefenacht, Bull & Booth, Parallel Computing 69, 2017"};

}  // namespace baton::algorithms
