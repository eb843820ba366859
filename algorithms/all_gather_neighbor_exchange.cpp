#include <string>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// The pair, blocks 2 q and 2 q + 1, that a rank gets in round t >= 1 and passes on in round t + 1.
/// Even ranks look left first: their own, q - 1, q + 1, q - 2, …; odd ones right.
int pair_of_round(const Problem& p, int t) {
  const int distance = t % 2 == 0 ? t / 2 : -(t + 1) / 2;
  return p.rank / 2 + (p.rank % 2 == 0 ? distance : -distance);
}

/// Neighbour exchange all-gather: ranks exchange with one neighbour and the other by turns, their
/// own block first and then the pair of blocks that came last.
///
/// Rounds   P/2.
/// Sent     (P-1)n elements; for uneven counts, its own block, its own pair, and each pair received
///          but the last.
/// Domain   P = 1 or even, any counts, even or not, along any dimension; blocks may be empty.
/// Scratch  none.
/// Source   Chen, Zhang, Zhang & Yuan, "Performance Evaluation of Allgather Algorithms on Terascale
///          Linux Cluster with Fast Ethernet", HPC Asia 2005.
Schedule generate(const Problem& p) {
  ScheduleBuilder exchange(p);
  const Chunks block = exchange.output_blocks();
  const int mate = p.rank ^ 1;
  const int other = p.rank % 2 == 0 ? p.rank_before(1) : p.rank_after(1);
  if (p.size > 1) {
    exchange.send(mate, exchange.input());
    exchange.recv(mate, block[mate]);
    exchange.end_round();
  }
  exchange.copy(block[p.rank], exchange.input());
  for (int t = 1; t < p.size / 2; ++t) {
    const int peer = t % 2 == 0 ? mate : other;
    exchange.send(peer, block.range(2 * pair_of_round(p, t - 1), 2));
    exchange.recv(peer, block.range(2 * pair_of_round(p, t), 2));
    exchange.end_round();
  }
  return exchange.build("neighbor_exchange");
}

Cost cost(const Problem& p) {
  const std::int64_t total = p.total_count(), own = p.block_count(p.rank);
  Cost cost;
  cost.rounds = p.size / 2;
  cost.received = total - own;
  if (p.size > 1) {  // the last pair to come, of P = 2 its own, is not passed on
    const int last = p.modulo(2 * pair_of_round(p, p.size / 2 - 1));
    cost.sent = own + total - p.block_count(last) - p.block_count(last + 1);
  }
  return cost;
}

std::string refuses(const Problem& p) {
  if (p.size == 1 || p.size % 2 == 0) return {};
  return "needs an even number of ranks, found " + std::to_string(p.size);
}

}  // namespace

extern const Row all_gather_neighbor_exchange{.collective = Collective::all_gather,
                                              .name = "neighbor_exchange",
                                              .place = 5,
                                              .generate = generate,
                                              .cost = cost,
                                              .refuses = refuses,
                                              .uneven = true,
                                              .rounds = "P/2",
                                              .sent = "(P-1)n",
                                              .source = "Chen, Zhang, Zhang & Yuan, HPC Asia 2005"};

}  // namespace baton::algorithms
