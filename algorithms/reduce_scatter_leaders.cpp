#include "composition.hpp"
#include "row.hpp"

namespace baton::algorithms {

extern const Row reduce_binomial, scatter_binomial, reduce_scatter_circulant;  // its parts

namespace {

struct Parts {
  explicit Parts(const Problem& p) : mates(mates_of(p)), leaders(leaders_of(p)) {
    const int local = p.hosts->local(p.rank), size = static_cast<int>(mates.size());
    within = part_of(p, Collective::reduce, size, local, p.total_count());
    across = part_of(p, Collective::reduce_scatter, host_counts(p), p.hosts->of(p.rank));
    across.average = p.average;
    back = part_of(p, Collective::scatter, counts_of(p, mates), local);
    within.in_place = across.in_place = back.in_place = false;
    leads = local == 0;
    alone = size == 1;
  }
  /// Elements that a leader keeps: all blocks of the host's sums, and those of its own ranks.
  std::int64_t kept() const { return leads && !alone ? within.count + across.count : 0; }

  std::vector<int> mates, leaders;
  Problem within, across, back;
  bool leads, alone;
};

/// Reduce-scatter by leaders: each host's ranks reduce to the lowest of them by a binomial tree,
/// the leaders of the H hosts reduce-scatter the hosts' blocks on a circulant graph, and scatter
/// them by a binomial tree.
///
/// Rounds   2 ceil(log2 L) within, ceil(log2 H) across, L being the ranks of the largest host.
/// Sent     at most n(P + L/2 - 1). By a leader: all blocks but its host's, then its host's but its
///          own. By the others: all blocks, then those of their subtree but their own.
/// Domain   any hosts; any counts, even or not.
/// Order    one tree per block; op must be commutative.
/// Scratch  by a leader of others: all blocks and its host's; and that of the parts.
/// Source   the composition: Husbands & Hoe, SC 1998; the part across: Träff, arXiv:2410.14234,
///          2024.
Schedule generate(const Problem& p) {
  ScheduleBuilder all(p);
  const Parts parts(p);
  const Chunks input = all.input_blocks();
  const Region own = all.chunks(p.size)[p.rank];
  const Region kept = all.scratch(parts.kept());
  Region sums = kept, mine = kept;  // the host's sums of all blocks; all hosts' of the host's own
  sums.block = kept.block > 0 ? parts.within.count : 0;
  mine.offset += sums.block;
  mine.block -= sums.block;
  if (!parts.alone) {
    all.embed(reduce_binomial.generate(parts.within), parts.mates, input.range(0, p.size), {sums});
  }
  while (all.round() < ceil_log2(p.hosts->largest())) all.end_round();
  if (parts.leads) {
    std::vector<Region> block;  // of each rank, where the host's sum of it lies
    for (int i = 0; i < p.size; ++i) {
      block.push_back(parts.alone ? input[i] : sums);
      sums.offset += p.block_count(i);
      block.back().block = p.block_count(i);
    }
    Regions by_host;
    for (int h = 0; h < p.hosts->count(); ++h) {
      for (const int rank : p.hosts->ranks(h))
        by_host.push_back(block[static_cast<std::size_t>(rank)]);
    }
    all.embed(reduce_scatter_circulant.generate(parts.across), parts.leaders, by_host,
              {parts.alone ? own : mine});
  }
  if (!parts.alone) all.embed(scatter_binomial.generate(parts.back), parts.mates, {mine}, {own});
  return all.build("leaders");
}

Cost cost(const Problem& p) {
  const Parts parts(p);
  const int rounds = ceil_log2(p.hosts->largest());
  Cost cost;
  add_local(cost, reduce_binomial.cost(parts.within), rounds);
  if (parts.leads) {
    add_across(cost, reduce_scatter_circulant.cost(parts.across), 1);
  } else {
    add_rounds_across(cost, reduce_scatter_circulant.cost(parts.across));
  }
  add_local(cost, scatter_binomial.cost(parts.back), rounds);
  cost.scratch += parts.kept();
  return cost;
}

}  // namespace

extern const Row reduce_scatter_leaders{
    .collective = Collective::reduce_scatter,
    .name = "leaders",
    .place = 8,
    .generate = generate,
    .cost = cost,
    .uneven = true,
    .hierarchical = true,
    .rounds = "2 ceil(log2 L) within, ceil(log2 H) across",
    .sent = "at most n(P + L/2 - 1)",
    .source = "Husbands & Hoe, SC 1998; Träff, arXiv:2410.14234, 2024"};

}  // namespace baton::algorithms
