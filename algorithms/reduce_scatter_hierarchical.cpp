#include <numeric>

#include "composition.hpp"
#include "row.hpp"

namespace baton::algorithms {

extern const Row reduce_scatter_circulant;  // its parts

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

/// Hierarchical reduce-scatter: within each host, each rank sums up the blocks of all ranks that
/// have its place on some host; these then sum up and take their own across the H hosts. Both on
/// circulant graphs.
///
/// Rounds   ceil(log2 L) within, ceil(log2 H) across, on H hosts of L ranks each.
/// Sent     (L-1)Hn within, (H-1)n across; for uneven counts, those of the parts.
/// Domain   hosts with equal numbers of ranks, in any order; any counts, even or not.
/// Order    one tree per block; op must be commutative.
/// Scratch  H n elements, and that of the parts.
/// Source   the composition: Cho, Finkler, Kung & Hunter, "BlueConnect", SysML 2019; the parts:
///          Träff, arXiv:2410.14234, 2024.
Schedule generate(const Problem& p) {
  ScheduleBuilder all(p);
  const Parts parts(p);
  const Chunks block = all.input_blocks();
  Regions input;  // in the order of places, then of hosts
  for (int l = 0; l < static_cast<int>(parts.mates.size()); ++l) {
    const Regions share = blocks_of(block, ranks_at(*p.hosts, l));
    input.insert(input.end(), share.begin(), share.end());
  }
  const Region sums = all.scratch(parts.within.count);
  all.embed(reduce_scatter_circulant.generate(parts.within), parts.mates, input, {sums});
  all.embed(reduce_scatter_circulant.generate(parts.across), parts.peers, {sums},
            {all.chunks(p.size)[p.rank]});
  return all.build("hierarchical");
}

Cost cost(const Problem& p) {
  const Parts parts(p);
  Cost cost;
  add_local(cost, reduce_scatter_circulant.cost(parts.within), ceil_log2(p.hosts->largest()));
  add_across(cost, reduce_scatter_circulant.cost(parts.across), p.hosts->largest());
  cost.scratch += parts.within.count;
  return cost;
}

}  // namespace

extern const Row reduce_scatter_hierarchical{
    .collective = Collective::reduce_scatter,
    .name = "hierarchical",
    .place = 7,
    .generate = generate,
    .cost = cost,
    .refuses = uneven_hosts,
    .uneven = true,
    .hierarchical = true,
    .rounds = "ceil(log2 L) within, ceil(log2 H) across",
    .sent = "(L-1)Hn within, (H-1)n across",
    .source = "Cho, Finkler, Kung & Hunter, SysML 2019; Träff, arXiv:2410.14234, 2024"};

}  // namespace baton::algorithms
