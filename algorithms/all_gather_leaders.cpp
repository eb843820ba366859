#include "composition.hpp"
#include "row.hpp"

namespace baton::algorithms {

extern const Row broadcast_binomial, gather_binomial, all_gather_circulant;  // its parts

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

/// All-gather by leaders: the lowest rank of each host gathers its ranks' blocks by a binomial
/// tree, the leaders all hosts' on a circulant graph, and broadcast them by a binomial tree.
///
/// Rounds   2 ceil(log2 L) within, ceil(log2 H) across, L being the ranks of the largest of H
///          hosts.
/// Sent     n(P-L) + nP ceil(log2 L) by leaders: all blocks but its host's, about, and all to each
///          of its children. By the others: their subtree's blocks and all to each of their
///          children.
/// Domain   any hosts; any counts, even or not, along any dimension; blocks may be empty.
/// Scratch  that of the gather.
/// Source   Träff, "Efficient Allgather for Regular SMP-Clusters", EuroPVM/MPI 2006; the part
///          across: Träff, arXiv:2410.14234, 2024.
Schedule generate(const Problem& p) {
  ScheduleBuilder all(p);
  const Parts parts(p);
  const Chunks block = all.output_blocks();
  Regions whole;
  for (int h = 0; h < p.hosts->count(); ++h) {
    const Regions gathered = blocks_of(block, p.hosts->ranks(h));
    whole.insert(whole.end(), gathered.begin(), gathered.end());
  }
  const int rounds = ceil_log2(p.hosts->largest());
  all.embed(gather_binomial.generate(parts.gather), parts.mates, {all.input()},
            blocks_of(block, parts.mates));
  while (all.round() < rounds) all.end_round();
  if (parts.leads) all.embed(all_gather_circulant.generate(parts.across), parts.leaders, {}, whole);
  all.embed(broadcast_binomial.generate(parts.back), parts.mates, {}, whole);
  return all.build("leaders");
}

Cost cost(const Problem& p) {
  const Parts parts(p);
  const int rounds = ceil_log2(p.hosts->largest());
  Cost cost;
  add_local(cost, gather_binomial.cost(parts.gather), rounds);
  if (parts.leads) {
    add_across(cost, all_gather_circulant.cost(parts.across), 1);
  } else {
    add_rounds_across(cost, all_gather_circulant.cost(parts.across));
  }
  add_local(cost, broadcast_binomial.cost(parts.back), rounds);
  return cost;
}

}  // namespace

extern const Row all_gather_leaders{
    .collective = Collective::all_gather,
    .name = "leaders",
    .place = 9,
    .generate = generate,
    .cost = cost,
    .uneven = true,
    .hierarchical = true,
    .rounds = "2 ceil(log2 L) within, ceil(log2 H) across",
    .sent = "n(P-L) + nP ceil(log2 L) by leaders",
    .source = "Träff, EuroPVM/MPI 2006; Träff, arXiv:2410.14234, 2024"};

}  // namespace baton::algorithms
