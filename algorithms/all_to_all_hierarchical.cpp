#include "composition.hpp"
#include "row.hpp"

namespace baton::algorithms {

extern const Row all_to_all_spread_out;  // its parts

namespace {

struct Parts {
  explicit Parts(const Problem& p)
      : local(p.hosts->local(p.rank)),
        ranks(p.hosts->largest()),
        mates(mates_of(p)),
        peers(ranks_at(*p.hosts, local)) {
    const int hosts = p.hosts->count();
    within = part_of(p, Collective::all_to_all, ranks, local, hosts * p.count);
    across = part_of(p, Collective::all_to_all, hosts, p.hosts->of(p.rank), ranks * p.count);
    within.in_place = across.in_place = false;
  }

  int local, ranks;
  std::vector<int> mates, peers;
  Problem within, across;
};

/// Hierarchical all-to-all: within each host, each rank collects the host's blocks for the ranks
/// that have its place on some host, and sends those of each at once.
///
/// Rounds   L-1 within, H-1 across, on H hosts of L ranks each.
/// Sent     (L-1)Hn within, (H-1)Ln across: fewer and longer messages between hosts.
/// Domain   hosts with equal numbers of ranks, in any order; even counts, any pair of dimensions.
/// Scratch  P n elements.
/// Source   Träff & Rougier, "MPI Collectives and Datatypes for Hierarchical All-to-all
///          Communication", EuroMPI/ASIA 2014.
Schedule generate(const Problem& p) {
  ScheduleBuilder all(p);
  const Parts parts(p);
  const Chunks in = all.input_blocks(), out = all.output_blocks();
  const int hosts = p.hosts->count();
  const Region collected = all.scratch(p.size * p.count);  // in the order of senders, then of hosts
  const Chunks block = all.chunks(collected, p.size);

  Regions by_place, by_host, from_host;
  for (int l = 0; l < parts.ranks; ++l) {
    const Regions blocks = blocks_of(in, ranks_at(*p.hosts, l));
    by_place.insert(by_place.end(), blocks.begin(), blocks.end());
  }
  for (int h = 0; h < hosts; ++h) {
    for (int l = 0; l < parts.ranks; ++l) by_host.push_back(block[l * hosts + h]);
    const Regions blocks = blocks_of(out, p.hosts->ranks(h));
    from_host.insert(from_host.end(), blocks.begin(), blocks.end());
  }
  all.embed(all_to_all_spread_out.generate(parts.within), parts.mates, by_place, {collected});
  all.embed(all_to_all_spread_out.generate(parts.across), parts.peers, by_host, from_host);
  return all.build("hierarchical");
}

Cost cost(const Problem& p) {
  const Parts parts(p);
  Cost cost;
  add_local(cost, all_to_all_spread_out.cost(parts.within), parts.ranks - 1);
  add_across(cost, all_to_all_spread_out.cost(parts.across), parts.ranks);
  cost.scratch = p.size * p.count;
  return cost;
}

}  // namespace

extern const Row all_to_all_hierarchical{.collective = Collective::all_to_all,
                                         .name = "hierarchical",
                                         .place = 4,
                                         .generate = generate,
                                         .cost = cost,
                                         .refuses = uneven_hosts,
                                         .hierarchical = true,
                                         .rounds = "L-1 within, H-1 across",
                                         .sent = "(L-1)Hn within, (H-1)Ln across",
                                         .source = "Träff & Rougier, EuroMPI/ASIA 2014"};

}  // namespace baton::algorithms
