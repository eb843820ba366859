#include <numeric>

#include "composition.hpp"

namespace baton {
namespace {

struct Parts {
  explicit Parts(const Problem& p)
      : local(p.hosts->local(p.rank)), mates(mates_of(p)), peers(ranks_at(*p.hosts, local)) {
    std::vector<std::int64_t> shares;  // of the host's ranks
    for (int l = 0; l < static_cast<int>(mates.size()); ++l) {
      const auto counts = counts_of(p, ranks_at(*p.hosts, l));
      shares.push_back(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    }
    within = part_of(p, Collective::reduce_scatter, shares, local);
    across = part_of(p, Collective::reduce_scatter, counts_of(p, peers), p.hosts->of(p.rank));
    within.in_place = across.in_place = false;
    across.average = p.average;
  }

  int local;
  std::vector<int> mates, peers;
  Problem within, across;
};

}  // namespace

/// Hierarchical reduce-scatter: within each host, each rank sums up the blocks of all ranks that
/// have its place on some host; these then sum up and take their own across the H hosts. Both on
/// circulant graphs.
///
/// Rounds   ceil(log2 L) within hosts of L ranks, ceil(log2 H) across.
/// Sent     (L-1) H n elements within, (H-1) n across; for uneven counts, those of the parts.
/// Domain   hosts with equal numbers of ranks, in any order; any counts, even or not.
/// Order    one tree per block; op must be commutative.
/// Scratch  H n elements, and that of the parts.
/// Source   the composition: Cho, Finkler, Kung & Hunter, "BlueConnect", SysML 2019; the parts:
///          Träff, arXiv:2410.14234, 2024.
Schedule reduce_scatter_hierarchical(const Problem& p) {
  ScheduleBuilder all(p);
  const Parts parts(p);
  const Chunks block = all.input_blocks();
  Regions input;  // in the order of places, then of hosts
  for (int l = 0; l < static_cast<int>(parts.mates.size()); ++l) {
    const Regions share = blocks_of(block, ranks_at(*p.hosts, l));
    input.insert(input.end(), share.begin(), share.end());
  }
  const Region sums = all.scratch(parts.within.count);
  all.embed(reduce_scatter_circulant(parts.within), parts.mates, input, {sums});
  all.embed(reduce_scatter_circulant(parts.across), parts.peers, {sums},
            {all.chunks(p.size)[p.rank]});
  return all.build("hierarchical");
}

Cost reduce_scatter_hierarchical_cost(const Problem& p) {
  const Parts parts(p);
  Cost cost;
  add_local(cost, reduce_scatter_circulant_cost(parts.within), ceil_log2(p.hosts->largest()));
  add_across(cost, reduce_scatter_circulant_cost(parts.across), p.hosts->largest());
  cost.scratch += parts.within.count;
  return cost;
}

}  // namespace baton
