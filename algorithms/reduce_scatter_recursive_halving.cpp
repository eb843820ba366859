#include <algorithm>
#include <bit>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Elements in blocks first … last - 1.
std::int64_t elements(const Problem& p, int first, int last) {
  if (!p.input_blocks) return (last - first) * p.count;
  std::int64_t sum = 0;
  for (int i = first; i < last; ++i) sum += p.block_count(i);
  return sum;
}

/// One of Q groups, the largest power of two in P: the first P - Q have two ranks, the others one.
struct Grouping {
  explicit Grouping(const Problem& p)
      : groups(static_cast<int>(std::bit_floor(static_cast<unsigned>(p.size)))),
        pairs(p.size - groups),
        paired(p.rank < 2 * pairs),
        odd(paired && p.rank % 2 == 1),
        group(paired ? p.rank / 2 : p.rank - pairs) {}
  /// The group's first rank and first block; of group Q: P.
  int first(int g) const { return std::min(2 * g, g + pairs); }
  /// The blocks that a rank ever sums: all for a pair, otherwise those kept in the first exchange.
  int first_summed() const { return paired || group < groups / 2 ? 0 : first(groups / 2); }
  int end_summed() const {
    return paired || group >= groups / 2 ? first(groups) : first(groups / 2);
  }

  int groups, pairs;
  bool paired, odd;
  int group;
};

/// Recursive-halving reduce-scatter: in each round, a rank keeps half of its blocks and sends the
/// other half to the partner that keeps those; the distance halves as well.
///
/// Let Q be the largest power of two in P. The first 2(P-Q) ranks form pairs; the odd one of a pair
/// hands its vector to the even one beforehand and is handed its block afterwards.
///
/// Rounds   log2 Q, +2 if Q < P.
/// Sent     (P-1)n, +n if Q < P: all blocks but its own; by the odd rank of a pair, all blocks.
///          Received: the blocks kept in each round, and all blocks more by the even rank of a
///          pair; by the odd one its block.
/// Domain   any P >= 1, any count, uneven counts.
/// Order    one tree per block, whose first folds join distant ranks; op must be commutative.
/// Scratch  the blocks that the rank keeps in its first round, but for its own; by the even rank of
///          a pair all others.
/// Source   Thakur, Rabenseifner & Gropp, Optimization of collective communication operations in
///          MPICH, IJHPCA 19(1), 2005.
Schedule generate(const Problem& p) {
  ScheduleBuilder halves(p);
  const Grouping g(p);
  const Chunks input = halves.input_blocks();
  const Region own = halves.chunks(p.size)[p.rank];
  if (g.odd) {
    halves.send(p.rank - 1, input.range(0, p.size));
    while (halves.round() < ceil_log2(g.groups) + 1) halves.end_round();
    halves.recv(p.rank - 1, own);
    return halves.build("recursive_halving");
  }

  const int base = g.first_summed();
  const Region scratch = halves.scratch(elements(p, base, g.end_summed()) - p.count);
  const auto sums = [&](int first, int last) {  // where sums of blocks first … last - 1 lie
    Regions regions;
    const auto append = [&](int begin, int end) {
      if (begin >= end) return;
      Region part = scratch;
      part.offset += elements(p, base, begin) - (begin > p.rank ? p.count : 0);
      part.block = elements(p, begin, end);
      regions.push_back(part);
    };
    append(first, std::min(last, p.rank));
    if (first <= p.rank && p.rank < last) regions.push_back(own);
    append(std::max(first, p.rank + 1), last);
    return regions;
  };

  if (g.paired) {
    halves.recv_reduce(p.rank + 1, sums(0, p.size), input.range(0, p.size), Side::right);
  }
  if (g.pairs > 0) halves.end_round();
  bool summed = g.paired;
  const auto blocks = [&](int first, int last) {
    return summed ? sums(first, last) : input.range(first, last - first);
  };
  int group = 0;  // groups group … group + 2 distance - 1 are kept so far
  for (int distance = g.groups / 2; distance > 0; distance /= 2) {
    const bool upper = (g.group & distance) != 0;
    const int kept = upper ? group + distance : group, given = upper ? group : group + distance;
    const int partner = g.first(g.group ^ distance);
    const int first = g.first(kept), last = g.first(kept + distance);
    halves.send(partner, blocks(g.first(given), g.first(given + distance)));
    halves.recv_reduce(partner, sums(first, last), blocks(first, last),
                       upper ? Side::left : Side::right);
    halves.end_round();
    group = kept;
    summed = true;
  }
  if (g.paired) {
    halves.reduced(sums(p.rank, p.rank + 2));
    halves.send(p.rank + 1, sums(p.rank + 1, p.rank + 2));
  } else {
    halves.reduced(own);
  }
  return halves.build("recursive_halving");
}

Cost cost(const Problem& p) {
  const Grouping g(p);
  Cost cost;
  cost.rounds = ceil_log2(g.groups) + (g.pairs > 0 ? 2 : 0);
  if (g.odd) {
    cost.sent = p.total_count();
    cost.received = p.count;
    return cost;
  }
  if (g.paired) cost.received = p.total_count();
  int group = 0;
  for (int distance = g.groups / 2; distance > 0; distance /= 2) {
    if (g.group & distance) group += distance;
    cost.received += elements(p, g.first(group), g.first(group + distance));
  }
  cost.sent = p.total_count() - p.count;  // of a pair too: its other block goes to the odd rank
  cost.folded = cost.received;
  cost.scratch = elements(p, g.first_summed(), g.end_summed()) - p.count;
  return cost;
}

}  // namespace

extern const Row reduce_scatter_recursive_halving{
    .collective = Collective::reduce_scatter,
    .name = "recursive_halving",
    .place = 3,
    .generate = generate,
    .cost = cost,
    .uneven = true,
    .rounds = "log2 Q, +2 if Q < P",
    .sent = "(P-1)n, +n if Q < P",
    .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"};

}  // namespace baton::algorithms
