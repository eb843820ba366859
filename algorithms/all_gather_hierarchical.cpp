#include <numeric>

#include "composition.hpp"
#include "row.hpp"

namespace baton::algorithms {

extern const Row all_gather_circulant;  // its parts

namespace {

struct Parts {
  explicit Parts(const Problem& p)
      : local(p.hosts->local(p.rank)), mates(mates_of(p)), peers(ranks_at(*p.hosts, local)) {
    across = part_of(p, Collective::all_gather, counts_of(p, peers), p.hosts->of(p.rank));
    across.in_place = p.in_place;
    std::vector<std::int64_t> gathered;  // by each of the host's ranks
    for (int l = 0; l < static_cast<int>(mates.size()); ++l) {
      const auto counts = counts_of(p, ranks_at(*p.hosts, l));
      gathered.push_back(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    }
    within = part_of(p, Collective::all_gather, gathered, local);
  }

  int local;
  std::vector<int> mates, peers;
  Problem across, within;
};

/// Hierarchical all-gather: ranks with equal places on the H hosts gather their blocks, then the L
/// ranks of each host what they have gathered. Both on circulant graphs.
///
/// Rounds   ceil(log2 H) across, ceil(log2 L) within.
/// Sent     (H-1)n across, (L-1)Hn within; for uneven counts, those of the parts.
/// Domain   hosts with equal numbers of ranks, in any order; any counts, even or not, along any
///          dimension; blocks may be empty.
/// Scratch  none.
/// Source   the composition: Träff, "Efficient Allgather for Regular SMP-Clusters", EuroPVM/MPI
///          2006; the parts: Träff, arXiv:2410.14234, 2024.
Schedule generate(const Problem& p) {
  ScheduleBuilder all(p);
  const Parts parts(p);
  const Chunks block = all.output_blocks();
  Regions whole;
  for (int l = 0; l < static_cast<int>(parts.mates.size()); ++l) {
    const Regions gathered = blocks_of(block, ranks_at(*p.hosts, l));
    whole.insert(whole.end(), gathered.begin(), gathered.end());
  }
  all.embed(all_gather_circulant.generate(parts.across), parts.peers, {all.input()},
            blocks_of(block, parts.peers));
  all.embed(all_gather_circulant.generate(parts.within), parts.mates, {}, whole);
  return all.build("hierarchical");
}

Cost cost(const Problem& p) {
  const Parts parts(p);
  Cost cost;
  add_across(cost, all_gather_circulant.cost(parts.across), p.hosts->largest());
  add_local(cost, all_gather_circulant.cost(parts.within), ceil_log2(p.hosts->largest()));
  return cost;
}

}  // namespace

extern const Row all_gather_hierarchical{
    .collective = Collective::all_gather,
    .name = "hierarchical",
    .place = 8,
    .generate = generate,
    .cost = cost,
    .refuses = uneven_hosts,
    .uneven = true,
    .hierarchical = true,
    .rounds = "ceil(log2 H) across, ceil(log2 L) within",
    .sent = "(H-1)n across, (L-1)Hn within",
    .source = "Träff, EuroPVM/MPI 2006; Träff, arXiv:2410.14234, 2024"};

}  // namespace baton::algorithms
