#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Chain reduce: each rank folds its input into what arrives from the next and passes the sum to
/// the one before. Cut into segments, it is a pipeline that approaches the bandwidth of one link
/// whatever P.
///
/// Rounds   P-1, +1 if forwarded: see Order.
/// Sent     n elements by each rank but the head of the chain. Received by each but the last: n.
///          Forwarding: n more, from rank 0 to the root.
/// Domain   any P, root and count.
/// Order    from the last of the chain to its head. The head is the root, or rank 0 where the
///          operation does not commute, which forwards the result to the root: rank order.
/// Scratch  n elements on each rank that receives and is not the root, besides slots.
/// Source   folklore; the reverse of the chain broadcast.
Schedule generate(const Problem& p) {
  ScheduleBuilder chain(p);
  const int head = p.commutative ? p.root : 0;
  const int v = p.modulo(p.rank - head);
  for (int t = p.size - 1; t > 0; --t) {
    if (v == t) chain.send(p.rank_before(1), chain.work());
    if (v == t - 1) chain.recv_reduce(p.rank_after(1), chain.work());
    chain.end_round();
  }
  if (p.rank == head) chain.reduced(chain.work());
  if (head != p.root) {
    if (p.rank == head) chain.send(p.root, chain.work());
    if (p.rank == p.root) chain.recv(head, chain.work());
  }
  return chain.build("chain");
}

Cost cost(const Problem& p) {
  const int head = p.commutative ? p.root : 0;
  const int v = p.modulo(p.rank - head);
  const bool forward = head != p.root, last = v == p.size - 1;
  Cost cost;
  cost.rounds = p.size - 1 + forward;
  cost.path = cost.rounds * p.count;
  cost.sent = (v != 0 || forward) ? p.count : 0;
  cost.received = (!last + (forward && p.rank == p.root)) * p.count;
  cost.folded = last ? 0 : p.count;
  cost.scratch = !last && p.rank != p.root ? p.count : 0;
  return cost;
}

}  // namespace

extern const Row reduce_chain{.collective = Collective::reduce,
                              .name = "chain",
                              .place = 3,
                              .generate = generate,
                              .cost = cost,
                              .ordered = true,
                              .neighbors = true,
                              .rounds = "P-1, +1 if forwarded",
                              .sent = "n",
                              .source = "folklore"};

}  // namespace baton::algorithms
