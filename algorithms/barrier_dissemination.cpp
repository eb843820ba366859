#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Dissemination barrier: in every round each rank tells the one twice as far as before that
/// all whom it has heard of, directly or not, are there.
///
/// The token is overwritten by what arrives once it has been sent, and so the next message waits
/// for all that came before: without that, nothing would order them.
///
/// Rounds   ceil(log2 P).
/// Sent     ceil(log2 P) elements, and as many received, by each rank.
/// Domain   any P.
/// Scratch  one element, besides slots.
/// Source   Hensgen, Finkel & Manber, International Journal of Parallel Programming 17(1), 1988.
Schedule generate(const Problem& p) {
  ScheduleBuilder barrier(p);
  const Region token = barrier.scratch(1);
  barrier.copy(token, barrier.input());
  for (int d = 1; d < p.size; d *= 2) {
    barrier.send(p.rank_after(d), token);
    barrier.recv_late(p.rank_before(d), token);
    barrier.end_round();
  }
  return barrier.build("dissemination");
}

Cost cost(const Problem& p) {
  Cost cost;
  cost.rounds = cost.sent = cost.received = ceil_log2(p.size);
  cost.scratch = 1;
  return cost;
}

}  // namespace

extern const Row barrier_dissemination{
    .collective = Collective::barrier,
    .name = "dissemination",
    .place = 1,
    .generate = generate,
    .cost = cost,
    .rounds = "ceil(log2 P)",
    .sent = "ceil(log2 P)",
    .source =
        "Hensgen, Finkel & Manber, International Journal of Parallel Programming 17(1), 1988"};

}  // namespace baton::algorithms
