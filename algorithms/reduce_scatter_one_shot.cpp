#include "row.hpp"

namespace baton::algorithms {
namespace {

/// One-shot reduce-scatter: every rank sends each other rank its block at once, and folds what it
/// has got.
///
/// Rounds   P-1; depth 1.
/// Sent     (P-1)n elements: all blocks but its own. Received: P-1 times its own block.
/// Domain   any P >= 1, any count, uneven counts.
/// Order    rank order.
/// Scratch  P - 1 times the own block.
/// Source   folklore; the linear algorithm with room for all messages.
Schedule generate(const Problem& p) {
  ScheduleBuilder exchange(p);
  const Chunks input = exchange.input_blocks();
  const Region own = exchange.chunks(p.size)[p.rank];
  const Region room = exchange.scratch((p.size - 1) * p.count);
  const auto from = [&](int rank) {
    const int place = rank < p.rank ? rank : rank - 1;
    return rank == p.rank ? own : contiguous(room.buffer, room.offset + place * p.count, p.count);
  };
  for (int t = 1; t < p.size; ++t) {
    exchange.send(p.rank_after(t), input[p.rank_after(t)]);
    exchange.recv(p.rank_before(t), from(p.rank_before(t)));
    exchange.end_round();
  }
  Region sum = from(0);
  for (int rank = 1; rank < p.size; ++rank) {
    const Region next = rank >= p.rank ? own : sum;
    exchange.fold(next, sum, from(rank));
    sum = next;
  }
  exchange.reduced(own);
  return exchange.build("one_shot");
}

Cost cost(const Problem& p) {
  Cost cost;
  cost.rounds = p.size - 1;
  cost.depth = p.size > 1 ? 1 : 0;
  cost.sent = p.total_count() - p.count;
  cost.received = cost.folded = cost.scratch = (p.size - 1) * p.count;
  return cost;
}

}  // namespace

extern const Row reduce_scatter_one_shot{.collective = Collective::reduce_scatter,
                                         .name = "one_shot",
                                         .place = 5,
                                         .generate = generate,
                                         .cost = cost,
                                         .uneven = true,
                                         .ordered = true,
                                         .rounds = "P-1",
                                         .depth = "1",
                                         .sent = "(P-1)n",
                                         .source = "folklore"};

}  // namespace baton::algorithms
