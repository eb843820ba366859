#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Recursive-doubling scan: in every round each rank folds in what the rank twice as far below as
/// before has so far.
///
/// After the round of distance d, rank r holds ranks r-2d+1 … r, those below 0 left out: what it
/// sends next and, in the end, its result.
///
/// Rounds   ceil(log2 P).
/// Sent     n ceil(log2(P-r)) elements by rank r: n for each power of two below P-r. Received: n
///          for each power of two up to r.
/// Domain   any P and count.
/// Order    rank order; all that arrives stands on the left.
/// Scratch  none but slots.
/// Source   Hillis & Steele, Communications of the ACM 29(12), 1986.
Schedule generate(const Problem& p) {
  ScheduleBuilder scan(p);
  for (int d = 1; d < p.size; d *= 2) {
    if (p.rank + d < p.size) scan.send(p.rank + d, scan.work());
    if (p.rank - d >= 0) scan.recv_reduce(p.rank - d, scan.work());
    scan.end_round();
  }
  scan.reduced(scan.work());
  return scan.build("recursive_doubling");
}

Cost cost(const Problem& p) {
  Cost cost;
  cost.rounds = ceil_log2(p.size);
  cost.sent = ceil_log2(p.size - p.rank) * p.count;
  cost.received = ceil_log2(p.rank + 1) * p.count;
  cost.folded = cost.received;
  return cost;
}

}  // namespace

extern const Row scan_recursive_doubling{.collective = Collective::scan,
                                         .name = "recursive_doubling",
                                         .place = 1,
                                         .generate = generate,
                                         .cost = cost,
                                         .ordered = true,
                                         .rounds = "ceil(log2 P)",
                                         .sent = "n ceil(log2(P-r))",
                                         .source = "Hillis & Steele, CACM 29(12), 1986"};

}  // namespace baton::algorithms
