#include <algorithm>
#include <bit>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Chunks first … first + n - 1 of Q: the part of the vector that a rank still has to do with.
struct Part {
  int first, n;
  Part half(bool upper) const { return {upper ? first + n / 2 : first, n / 2}; }
};

/// Rabenseifner's all-reduce: reduce-scatter by recursive halving, all-gather by recursive
/// doubling.
///
/// Let Q be the largest power of two in P. The first 2(P-Q) ranks form pairs; the odd one of a pair
/// hands its vector to the even one beforehand and is handed the result afterwards. The vector is
/// cut into Q chunks. Distances grow while the parts that are exchanged are halved, so that what is
/// folded has always come from contiguous ranks.
///
/// Rounds   2 log2 Q, +2 if Q < P.
/// Sent     2n(Q-1)/Q, +n if Q < P, about: n more by the even rank of a pair. By the odd one: n
///          elements. Exactly: n less the chunk that the rank completes, and the parts that it
///          keeps in each halving.
/// Domain   any P >= 1, any count; chunks may be empty.
/// Order    the lower group stands on the left: in rank order; each chunk is finished by one rank.
/// Scratch  none but slots: of n/2 elements, n for the even rank of a pair.
/// Source   Rabenseifner, Optimization of collective reduction operations, ICCS 2004, LNCS 3036.
Schedule generate(const Problem& p) {
  ScheduleBuilder halves(p);
  const Region all = halves.work();
  const int groups = static_cast<int>(std::bit_floor(static_cast<unsigned>(p.size)));
  const int pairs = p.size - groups;
  const auto first_of = [&](int group) { return std::min(2 * group, group + pairs); };
  const bool paired = p.rank < 2 * pairs, odd = paired && p.rank % 2 == 1;
  const int group = paired ? p.rank / 2 : p.rank - pairs;
  const Chunks chunk = halves.chunks(groups);
  const auto regions = [&](Part part) { return chunk.range(part.first, part.n); };

  if (odd) halves.send(p.rank - 1, all);
  if (paired && !odd) halves.recv_reduce(p.rank + 1, all);
  if (pairs > 0) halves.end_round();
  Part part{0, groups};
  for (int distance = 1; distance < groups; distance *= 2) {  // reduce-scatter
    const bool upper = (group & distance) != 0;
    if (!odd) {
      const int partner = first_of(group ^ distance);
      halves.send(partner, regions(part.half(!upper)));
      halves.recv_reduce(partner, regions(part.half(upper)));
    }
    part = part.half(upper);
    halves.end_round();
  }
  if (!odd) halves.reduced(chunk[part.first]);
  for (int distance = groups / 2; distance > 0; distance /= 2) {  // all-gather
    const bool upper = (group & distance) != 0;
    const Part other{upper ? part.first - part.n : part.first + part.n, part.n};
    if (!odd) {
      const int partner = first_of(group ^ distance);
      halves.send(partner, regions(part));
      halves.recv(partner, regions(other));
    }
    part = {std::min(part.first, other.first), 2 * part.n};
    halves.end_round();
  }
  if (paired && !odd) halves.send(p.rank + 1, all);
  if (odd) halves.recv(p.rank - 1, all);
  return halves.build("rabenseifner");
}

Cost cost(const Problem& p) {
  const int groups = static_cast<int>(std::bit_floor(static_cast<unsigned>(p.size)));
  const int pairs = p.size - groups;
  const bool paired = p.rank < 2 * pairs, odd = paired && p.rank % 2 == 1;
  const int group = paired ? p.rank / 2 : p.rank - pairs;
  Cost cost;
  cost.rounds = 2 * ceil_log2(groups) + (pairs > 0 ? 2 : 0);
  if (!odd) {
    if (paired) cost.folded = p.count;
    Part part{0, groups};
    for (int distance = 1; distance < groups; distance *= 2) {
      part = part.half((group & distance) != 0);
      cost.folded += chunk_offset(p.count, groups, part.first + part.n) -
                     chunk_offset(p.count, groups, part.first);
    }
    cost.sent = cost.folded + p.count - chunk_count(p.count, groups, part.first);
  } else {
    cost.sent = p.count;
  }
  cost.received = cost.sent;
  return cost;
}

}  // namespace

extern const Row all_reduce_rabenseifner{.collective = Collective::all_reduce,
                                         .name = "rabenseifner",
                                         .place = 6,
                                         .generate = generate,
                                         .cost = cost,
                                         .ordered = true,
                                         .rounds = "2 log2 Q, +2 if Q < P",
                                         .sent = "2n(Q-1)/Q, +n if Q < P",
                                         .source = "Rabenseifner, ICCS 2004"};

}  // namespace baton::algorithms
