#include "baton/schedule.hpp"

namespace baton {

/// Recursive-doubling scan: in every round each rank folds in what the rank twice as far below as
/// before has so far.
///
/// After the round of distance d, rank r holds ranks r-2d+1 … r, those below 0 left out: what it
/// sends next and, in the end, its result.
///
/// Rounds   ceil(log2 P).  Sent by rank r: n elements for each power of two below P-r; received: n
///          for each up to r.
/// Domain   any P and count.
/// Order    rank order; all that arrives stands on the left.
/// Scratch  none but slots.
/// Source   Hillis & Steele, Communications of the ACM 29(12), 1986.
Schedule scan_recursive_doubling(const Problem& p) {
  ScheduleBuilder scan(p);
  for (int d = 1; d < p.size; d *= 2) {
    if (p.rank + d < p.size) scan.send(p.rank + d, scan.work());
    if (p.rank - d >= 0) scan.recv_reduce(p.rank - d, scan.work());
    scan.end_round();
  }
  scan.reduced(scan.work());
  return scan.build("recursive_doubling");
}

Cost scan_recursive_doubling_cost(const Problem& p) {
  Cost cost;
  cost.rounds = ceil_log2(p.size);
  cost.sent = ceil_log2(p.size - p.rank) * p.count;
  cost.received = ceil_log2(p.rank + 1) * p.count;
  cost.folded = cost.received;
  return cost;
}

}  // namespace baton
