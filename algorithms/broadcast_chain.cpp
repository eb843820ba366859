#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Chain broadcast: each rank passes the data on to the next. Cut into segments, it is a pipeline
/// that approaches the bandwidth of one link whatever P.
///
/// Rounds   P-1.
/// Sent     n elements by each rank but the last of the chain. Received by each but the root: n.
/// Domain   any P, root and count.
/// Scratch  none.
/// Source   folklore.
Schedule generate(const Problem& p) {
  ScheduleBuilder chain(p);
  const int v = p.modulo(p.rank - p.root);
  for (int t = 0; t < p.size - 1; ++t) {
    if (v == t) chain.send(p.rank_after(1), chain.output());
    if (v == t + 1) chain.recv(p.rank_before(1), chain.output());
    chain.end_round();
  }
  return chain.build("chain");
}

Cost cost(const Problem& p) {
  const int v = p.modulo(p.rank - p.root);
  Cost cost;
  cost.rounds = p.size - 1;
  cost.path = cost.rounds * p.count;
  cost.sent = v < p.size - 1 ? p.count : 0;
  cost.received = v == 0 ? 0 : p.count;
  return cost;
}

}  // namespace

extern const Row broadcast_chain{.collective = Collective::broadcast,
                                 .name = "chain",
                                 .place = 3,
                                 .generate = generate,
                                 .cost = cost,
                                 .neighbors = true,
                                 .rounds = "P-1",
                                 .sent = "n",
                                 .source = "folklore"};

}  // namespace baton::algorithms
