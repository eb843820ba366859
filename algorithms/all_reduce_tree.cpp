#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Tree all-reduce: a binomial reduction to rank 0, then a binomial broadcast from it.
///
/// Rounds   2 ceil(log2 P).
/// Sent     n ceil(log2 P) by rank 0. By rank r: n elements for each of its children and n to its
///          parent.
/// Domain   any P >= 1, any count.
/// Order    subtrees are contiguous, the parent's stands on the left: in rank order, at rank 0
///          only.
/// Scratch  none but slots of n elements.
/// Source   textbook; Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005.
Schedule generate(const Problem& p) {
  ScheduleBuilder tree(p);
  const Region all = tree.work();
  const auto parent_over = [&](int distance) {
    return p.rank % (2 * distance) == 0 && p.rank + distance < p.size;
  };
  const auto child_over = [&](int distance) { return p.rank % (2 * distance) == distance; };

  int distance = 1;
  for (; distance < p.size; distance *= 2) {  // reduce
    if (parent_over(distance)) tree.recv_reduce(p.rank + distance, all);
    if (child_over(distance)) tree.send(p.rank - distance, all);
    tree.end_round();
  }
  if (p.rank == 0) tree.reduced(all);
  while ((distance /= 2) > 0) {  // broadcast: the same messages backwards
    if (child_over(distance)) tree.recv(p.rank - distance, all);
    if (parent_over(distance)) tree.send(p.rank + distance, all);
    tree.end_round();
  }
  return tree.build("tree");
}

Cost cost(const Problem& p) {
  int neighbours = p.rank == 0 ? 0 : 1;
  for (int distance = 1; p.rank % (2 * distance) == 0 && p.rank + distance < p.size;
       distance *= 2) {
    ++neighbours;
  }
  Cost cost;
  cost.rounds = 2 * ceil_log2(p.size);
  cost.path = cost.rounds * p.count;
  cost.sent = neighbours * p.count;
  cost.received = cost.sent;
  cost.folded = (neighbours - (p.rank != 0)) * p.count;
  return cost;
}

}  // namespace

extern const Row all_reduce_tree{.collective = Collective::all_reduce,
                                 .name = "tree",
                                 .place = 4,
                                 .generate = generate,
                                 .cost = cost,
                                 .ordered = true,
                                 .rounds = "2 ceil(log2 P)",
                                 .sent = "n ceil(log2 P) by rank 0",
                                 .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"};

}  // namespace baton::algorithms
