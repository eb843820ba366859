#include <algorithm>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// The k-th skip: P halved k times, rounded up.
int skip(int ranks, int k) { return (ranks + (1 << k) - 1) >> k; }

/// Elements in blocks rank + first … rank + last - 1, round the circle.
std::int64_t elements(const Problem& p, int first, int last) {
  if (!p.input_blocks) return std::max(last - first, 0) * p.count;
  std::int64_t sum = 0;
  for (int i = first; i < last; ++i) sum += p.block_count(p.rank_after(i));
  return sum;
}

/// Circulant reduce-scatter: ceil(log2 P) rounds at the least volume, for any P.
///
/// Seen from rank r, block r + i is i blocks away. Round k leaves partial sums of the blocks nearer
/// than skip s[k] = ceil(P / 2^k): the others are sent s[k] ranks ahead, where they are that much
/// nearer. In the end each rank has finished its own block.
///
/// Rounds   ceil(log2 P).
/// Sent     (P-1)n elements: all blocks but its own. Received in round k: |b[r], …, b[r + s[k-1] -
///          s[k] - 1]|; (P-1)n in all where counts are even.
/// Domain   any P >= 1, any count, uneven counts.
/// Order    one tree per block, which starts at the block's rank; op must be commutative.
/// Scratch  blocks r + 1, …, r + floor(P/2) - 1.
/// Source   Träff, Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms,
///          arXiv:2410.14234, 2024.
Schedule generate(const Problem& p) {
  ScheduleBuilder graph(p);
  const Chunks input = graph.input_blocks();
  const Region own = graph.chunks(p.size)[p.rank];
  const Region sums = graph.scratch(elements(p, 1, p.size / 2));  // in the order of distance
  // Where the blocks at distances first … last - 1 lie: sums if nearer than `summed`, else input.
  const auto blocks = [&](int first, int last, int summed) {
    Regions regions;
    if (first == 0) regions.push_back(own);
    const int begin = std::max(first, 1), middle = std::clamp(summed, begin, last);
    Region part = sums;
    part.offset += elements(p, 1, begin);
    part.block = elements(p, begin, middle);
    regions.push_back(part);
    for (const Region& region : input.range(p.rank + middle, last - middle)) {
      regions.push_back(region);
    }
    return regions;
  };

  for (int k = 1; k <= ceil_log2(p.size); ++k) {
    const int near = skip(p.size, k), from = skip(p.size, k - 1);
    const int summed = k == 1 ? 0 : p.size / 2;
    const int peer = p.rank_before(near);
    graph.send(p.rank_after(near), blocks(near, from, summed));
    graph.recv_reduce(peer, blocks(0, from - near, p.size), blocks(0, from - near, summed),
                      peer < p.rank ? Side::left : Side::right);
    graph.end_round();
  }
  graph.reduced(own);
  return graph.build("circulant");
}

Cost cost(const Problem& p) {
  Cost cost;
  cost.rounds = ceil_log2(p.size);
  cost.sent = p.total_count() - p.count;
  for (int k = 1; k <= ceil_log2(p.size); ++k) {
    cost.received += elements(p, 0, skip(p.size, k - 1) - skip(p.size, k));
  }
  cost.folded = cost.received;
  cost.scratch = elements(p, 1, p.size / 2);
  return cost;
}

}  // namespace

extern const Row reduce_scatter_circulant{.collective = Collective::reduce_scatter,
                                          .name = "circulant",
                                          .place = 4,
                                          .generate = generate,
                                          .cost = cost,
                                          .uneven = true,
                                          .rounds = "ceil(log2 P)",
                                          .sent = "(P-1)n",
                                          .source = "Träff, arXiv:2410.14234, 2024"};

}  // namespace baton::algorithms
