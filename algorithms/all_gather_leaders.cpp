#include "composition.hpp"

namespace baton {
namespace {

struct Parts {
  explicit Parts(const Problem& p) : mates(mates_of(p)), leaders(leaders_of(p)) {
    const int local = p.hosts->local(p.rank);
    gather = part_of(p, Collective::gather, counts_of(p, mates), local);
    gather.in_place = p.in_place;
    across = part_of(p, Collective::all_gather, host_counts(p), p.hosts->of(p.rank));
    back =
        part_of(p, Collective::broadcast, static_cast<int>(mates.size()), local, p.total_count());
    leads = local == 0;
  }

  std::vector<int> mates, leaders;
  Problem gather, across, back;
  bool leads;
};

}  // namespace

/// All-gather by leaders: the lowest rank of each host gathers its ranks' blocks by a binomial
/// tree, the leaders all hosts' on a circulant graph, and broadcast them by a binomial tree.
///
/// Rounds   2 ceil(log2 L) within hosts, L being the ranks of the largest; ceil(log2 H) across the
///          H hosts.
/// Sent     by a leader: all blocks but its host's, about, and all to each of its children; by the
///          others: their subtree's blocks and all to each of their children.
/// Domain   any hosts; any counts, even or not, along any dimension; blocks may be empty.
/// Scratch  that of the gather.
/// Source   Träff, "Efficient Allgather for Regular SMP-Clusters", EuroPVM/MPI 2006; the part
///          across: Träff, arXiv:2410.14234, 2024.
Schedule all_gather_leaders(const Problem& p) {
  ScheduleBuilder all(p);
  const Parts parts(p);
  const Chunks block = all.output_blocks();
  Regions whole;
  for (int h = 0; h < p.hosts->count(); ++h) {
    const Regions gathered = blocks_of(block, p.hosts->ranks(h));
    whole.insert(whole.end(), gathered.begin(), gathered.end());
  }
  const int rounds = ceil_log2(p.hosts->largest());
  all.embed(gather_binomial(parts.gather), parts.mates, {all.input()},
            blocks_of(block, parts.mates));
  while (all.round() < rounds) all.end_round();
  if (parts.leads) all.embed(all_gather_circulant(parts.across), parts.leaders, {}, whole);
  all.embed(broadcast_binomial(parts.back), parts.mates, {}, whole);
  return all.build("leaders");
}

Cost all_gather_leaders_cost(const Problem& p) {
  const Parts parts(p);
  const int rounds = ceil_log2(p.hosts->largest());
  Cost cost;
  add_local(cost, gather_binomial_cost(parts.gather), rounds);
  if (parts.leads) {
    add_across(cost, all_gather_circulant_cost(parts.across), 1);
  } else {
    add_rounds_across(cost, all_gather_circulant_cost(parts.across));
  }
  add_local(cost, broadcast_binomial_cost(parts.back), rounds);
  return cost;
}

}  // namespace baton
