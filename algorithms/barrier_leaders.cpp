#include "composition.hpp"
#include "row.hpp"

namespace baton::algorithms {

extern const Row broadcast_binomial;  // its parts

namespace {

/// Barrier by leaders: each host's ranks report to the lowest of them along a binomial tree, the
/// leaders of the H hosts meet by dissemination, and the news goes back along the trees.
///
/// Rounds   2 ceil(log2 L) within, ceil(log2 H) across, L being the ranks of the largest of H
///          hosts.
/// Sent     ceil(log2 L) + ceil(log2 H) by leaders: one element for each child and the parent in
///          the tree, and ceil(log2 H) by a leader.
/// Domain   any hosts.
/// Scratch  one element, besides slots.
/// Source   Hensgen, Finkel & Manber, International Journal of Parallel Programming 17(1), 1988,
///          across hosts; the trees are folklore.
Schedule generate(const Problem& p) {
  ScheduleBuilder barrier(p);
  const Region token = barrier.scratch(1);
  const std::vector<int> mates = mates_of(p), leaders = leaders_of(p);
  const int l = p.hosts->local(p.rank), h = p.hosts->of(p.rank);
  const int ranks = static_cast<int>(mates.size()), hosts = p.hosts->count();
  const int rounds = ceil_log2(p.hosts->largest());
  const auto mate = [&](int i) { return mates[static_cast<std::size_t>(i)]; };
  const auto leader = [&](int i) { return leaders[static_cast<std::size_t>((i + hosts) % hosts)]; };

  barrier.copy(token, barrier.input());
  for (int t = 0; t < rounds; ++t) {
    const int d = 1 << t;
    if (l % (2 * d) == d) barrier.send(mate(l - d), token);
    if (l % (2 * d) == 0 && l + d < ranks) barrier.recv_late(mate(l + d), token);
    barrier.end_round();
  }
  for (int d = 1; d < hosts; d *= 2) {
    if (l == 0) barrier.send(leader(h + d), token);
    if (l == 0) barrier.recv_late(leader(h - d), token);
    barrier.end_round();
  }
  for (int t = rounds - 1; t >= 0; --t) {
    const int d = 1 << t;
    if (l % (2 * d) == d) barrier.recv_late(mate(l - d), token);
    if (l % (2 * d) == 0 && l + d < ranks) barrier.send(mate(l + d), token);
    barrier.end_round();
  }
  return barrier.build("leaders");
}

Cost cost(const Problem& p) {
  const std::vector<int> mates = mates_of(p);
  const int local = p.hosts->local(p.rank), ranks = static_cast<int>(mates.size());
  const Problem back = part_of(p, Collective::broadcast, ranks, local, 1);
  const Cost down = broadcast_binomial.cost(back);
  const int rounds = ceil_log2(p.hosts->largest()), across = ceil_log2(p.hosts->count());
  Cost cost;
  cost.rounds = 2 * rounds + across;
  cost.sent = down.sent + down.received + (local == 0 ? across : 0);
  cost.received = cost.sent;
  cost.scratch = 1;
  cost.local_rounds = 2 * rounds;
  return cost;
}

}  // namespace

extern const Row barrier_leaders{
    .collective = Collective::barrier,
    .name = "leaders",
    .place = 2,
    .generate = generate,
    .cost = cost,
    .hierarchical = true,
    .rounds = "2 ceil(log2 L) within, ceil(log2 H) across",
    .sent = "ceil(log2 L) + ceil(log2 H) by leaders",
    .source =
        "Hensgen, Finkel & Manber, International Journal of Parallel Programming 17(1), 1988"};

}  // namespace baton::algorithms
