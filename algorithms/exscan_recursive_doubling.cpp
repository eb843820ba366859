#include <algorithm>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Recursive-doubling exclusive scan: in every round each rank folds in what the rank twice as far
/// below as before has so far.
///
/// Before the round of distance d, the output of rank r holds ranks r-d+1 … r-1, those below 0 left
/// out; what it sends is that and its own input.
///
/// Rounds   ceil(log2 P).
/// Sent     n ceil(log2(P-r)) elements by rank r: n for each power of two below P-r. Received: n
///          for each power of two up to r.
/// Domain   any P and count.
/// Order    rank order; all that arrives stands on the left.
/// Scratch  on ranks 1 … P-3, n elements for what is sent; in place, n more on ranks 1 … P-2 for a
///          copy of the input; besides slots.
/// Source   Hillis & Steele, Communications of the ACM 29(12), 1986, made exclusive.
Schedule generate(const Problem& p) {
  ScheduleBuilder scan(p);
  const bool first = p.rank == 0, last = p.rank == p.size - 1;
  Region own = scan.input(), partial;
  if (p.in_place && !first && !last) {  // the output takes its place
    const Region copy = scan.scratch(p.count);
    scan.copy(copy, own);
    own = copy;
  }
  if (!first && p.rank + 2 < p.size) partial = scan.scratch(p.count);

  for (int d = 1; d < p.size; d *= 2) {
    if (p.rank + d < p.size) {
      const bool alone = d == 1 || first;  // nothing has arrived
      if (!alone) scan.fold(partial, scan.output(), own);
      scan.send(p.rank + d, alone ? own : partial);
    }
    if (d == 1 && !first) scan.recv(p.rank - 1, scan.output());
    if (d > 1 && p.rank >= d) scan.recv_reduce(p.rank - d, scan.output());
    scan.end_round();
  }
  if (!first) scan.reduced(scan.output());
  return scan.build("recursive_doubling");
}

Cost cost(const Problem& p) {
  const bool inner = p.rank > 0 && p.rank < p.size - 1;
  Cost cost;
  cost.rounds = ceil_log2(p.size);
  cost.sent = ceil_log2(p.size - p.rank) * p.count;
  cost.received = ceil_log2(p.rank + 1) * p.count;
  if (p.rank > 0) {  // all that arrives but the first, and what is sent but the first
    const int folds = ceil_log2(p.rank + 1) - 1 + std::max(0, ceil_log2(p.size - p.rank) - 1);
    cost.folded = folds * p.count;
  }
  if (inner) cost.scratch = ((p.rank < p.size - 2) + p.in_place) * p.count;
  return cost;
}

}  // namespace

extern const Row exscan_recursive_doubling{.collective = Collective::exscan,
                                           .name = "recursive_doubling",
                                           .place = 1,
                                           .generate = generate,
                                           .cost = cost,
                                           .ordered = true,
                                           .rounds = "ceil(log2 P)",
                                           .sent = "n ceil(log2(P-r))",
                                           .source = "Hillis & Steele, CACM 29(12), 1986"};

}  // namespace baton::algorithms
