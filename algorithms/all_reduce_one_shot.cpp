#include "exchange.hpp"
#include "row.hpp"

namespace baton::algorithms {
namespace {

/// One-shot all-reduce: every rank sends its vector to all others at once and folds all.
///
/// Rounds   P-1; depth 1, the one latency that any all-reduce takes.
/// Sent     (P-1)n elements.
/// Domain   any P >= 1, any count; for short vectors and few ranks.
/// Order    rank order, the same on every rank.
/// Scratch  (P - 1) n elements.
/// Source   folklore.
Schedule generate(const Problem& p) {
  ScheduleBuilder exchange(p);
  exchange_and_fold(exchange, p, 1, p.size);
  exchange.reduced(exchange.work());
  return exchange.build("one_shot");
}

Cost cost(const Problem& p) {
  Cost cost;
  cost.rounds = p.size - 1;
  cost.depth = p.size > 1 ? 1 : 0;
  cost.sent = cost.received = cost.folded = cost.scratch = cost.rounds * p.count;
  return cost;
}

}  // namespace

extern const Row all_reduce_one_shot{.collective = Collective::all_reduce,
                                     .name = "one_shot",
                                     .place = 10,
                                     .generate = generate,
                                     .cost = cost,
                                     .ordered = true,
                                     .rounds = "P-1",
                                     .depth = "1",
                                     .sent = "(P-1)n",
                                     .source = "folklore"};

}  // namespace baton::algorithms
