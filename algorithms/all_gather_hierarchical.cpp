#include <numeric>

#include "composition.hpp"

namespace baton {
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

}  // namespace

/// Hierarchical all-gather: ranks with equal places on the H hosts gather their blocks, then the L
/// ranks of each host what they have gathered. Both on circulant graphs.
///
/// Rounds   ceil(log2 H) across hosts, ceil(log2 L) within.
/// Sent     (H-1) n elements across, (L-1) H n within; for uneven counts, those of the parts.
/// Domain   hosts with equal numbers of ranks, in any order; any counts, even or not, along any
///          dimension; blocks may be empty.
/// Scratch  none.
/// Source   the composition: Träff, "Efficient Allgather for Regular SMP-Clusters", EuroPVM/MPI
///          2006; the parts: Träff, arXiv:2410.14234, 2024.
Schedule all_gather_hierarchical(const Problem& p) {
  ScheduleBuilder all(p);
  const Parts parts(p);
  const Chunks block = all.output_blocks();
  Regions whole;
  for (int l = 0; l < static_cast<int>(parts.mates.size()); ++l) {
    const Regions gathered = blocks_of(block, ranks_at(*p.hosts, l));
    whole.insert(whole.end(), gathered.begin(), gathered.end());
  }
  all.embed(all_gather_circulant(parts.across), parts.peers, {all.input()},
            blocks_of(block, parts.peers));
  all.embed(all_gather_circulant(parts.within), parts.mates, {}, whole);
  return all.build("hierarchical");
}

Cost all_gather_hierarchical_cost(const Problem& p) {
  const Parts parts(p);
  Cost cost;
  add_across(cost, all_gather_circulant_cost(parts.across), p.hosts->largest());
  add_local(cost, all_gather_circulant_cost(parts.within), ceil_log2(p.hosts->largest()));
  return cost;
}

}  // namespace baton
