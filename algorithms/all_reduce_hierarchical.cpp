#include "composition.hpp"
#include "row.hpp"

namespace baton::algorithms {

extern const Row all_reduce_circulant, reduce_scatter_circulant, all_gather_circulant;  // its parts

namespace {

/// The ranks of a rank's host, the ranks with its place on other hosts, and the share of the vector
/// that these reduce together.
struct Shares {
  explicit Shares(const Problem& p)
      : local(p.hosts->local(p.rank)),
        mates(mates_of(p)),
        peers(ranks_at(*p.hosts, local)),
        size(static_cast<int>(mates.size())) {
    std::vector<std::int64_t> counts;
    for (int i = 0; i < size; ++i) counts.push_back(chunk_count(p.count, size, i));
    within = part_of(p, Collective::reduce_scatter, counts, local);
    across = part_of(p, Collective::all_reduce, static_cast<int>(peers.size()), p.hosts->of(p.rank),
                     within.count);
    across.average = p.average;
    back = part_of(p, Collective::all_gather, counts, local);
  }

  int local;
  std::vector<int> mates, peers;
  int size;
  Problem within, across, back;
};

/// Hierarchical all-reduce: a reduce-scatter within each host leaves each of its L ranks a share of
/// the vector, ranks with equal places on the H hosts all-reduce their share, and an all-gather
/// within each host ends it. All three on circulant graphs.
///
/// Rounds   2 ceil(log2 L) within, 2 ceil(log2 H) across.
/// Sent     2n(L-1)/L within, 2n(H-1)/(HL) across, about: those of the parts.
/// Domain   hosts with equal numbers of ranks, in any order; any count; shares may be empty.
/// Order    one tree for each chunk of a share, so ranks agree bit for bit; op must be commutative.
/// Scratch  that of the reduce-scatter, about n/2.
/// Source   the composition: Cho, Finkler, Kung & Hunter, "BlueConnect", SysML 2019; the parts:
///          Träff, arXiv:2410.14234, 2024.
Schedule generate(const Problem& p) {
  ScheduleBuilder all(p);
  const Shares shares(p);
  const Chunks share = all.chunks(shares.size);
  all.embed(reduce_scatter_circulant.generate(shares.within), shares.mates, {all.work()}, {});
  all.embed(all_reduce_circulant.generate(shares.across), shares.peers, {}, {share[shares.local]});
  all.embed(all_gather_circulant.generate(shares.back), shares.mates, {}, {all.work()});
  return all.build("hierarchical");
}

Cost cost(const Problem& p) {
  const Shares shares(p);
  Cost cost;
  add_local(cost, reduce_scatter_circulant.cost(shares.within), ceil_log2(shares.size));
  add_across(cost, all_reduce_circulant.cost(shares.across), shares.size);
  add_local(cost, all_gather_circulant.cost(shares.back), ceil_log2(shares.size));
  return cost;
}

}  // namespace

extern const Row all_reduce_hierarchical{
    .collective = Collective::all_reduce,
    .name = "hierarchical",
    .place = 11,
    .generate = generate,
    .cost = cost,
    .refuses = uneven_hosts,
    .hierarchical = true,
    .rounds = "2 ceil(log2 L) within, 2 ceil(log2 H) across",
    .sent = "2n(L-1)/L within, 2n(H-1)/(HL) across",
    .source = "Cho, Finkler, Kung & Hunter, SysML 2019; Träff, arXiv:2410.14234, 2024"};

}  // namespace baton::algorithms
