#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Whether blocks are sent from a copy of the input, since receives overwrite it.
bool staged(const Problem& p) { return p.in_place && (p.size > 1 || p.uneven()); }

std::int64_t extent(const Problem& p) {
  return p.input_blocks ? p.input_blocks->extent() : p.size * p.count;
}

/// Spread-out all-to-all: block i goes straight to rank i, to r + 1 first, then r + 2, and so on.
/// Nothing waits for anything. The reference.
///
/// Rounds   P-1; depth 1.
/// Sent     (P-1)n elements: all blocks but its own.
/// Domain   any P >= 1, any counts, even or not, any pair of dimensions; blocks may be empty.
/// Scratch  none; in place, the input's extent (P n elements if even) where P > 1.
/// Source   Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in
///          MPICH", IJHPCA 19(1), 2005.
Schedule generate(const Problem& p) {
  ScheduleBuilder spread(p);
  const Chunks in = spread.input_blocks(), out = spread.output_blocks();
  const Region stage = spread.scratch(staged(p) ? extent(p) : 0);
  const auto source = [&](Region region) {
    if (!staged(p)) return region;
    region.buffer = stage.buffer;
    region.offset += stage.offset;
    return region;
  };
  if (staged(p)) {
    const Regions all = p.uneven() ? in.range(0, p.size) : Regions{spread.input()};
    for (const Region& region : all) spread.copy(source(region), region);
  }
  for (int k = 1; k < p.size; ++k) {
    const int to = p.rank_after(k), from = p.rank_before(k);
    spread.send(to, source(in[to]));
    spread.recv(from, out[from]);
    spread.end_round();
  }
  spread.copy(out[p.rank], source(in[p.rank]));
  return spread.build("spread_out");
}

Cost cost(const Problem& p) {
  const auto r = static_cast<std::size_t>(p.rank);
  const auto others = [&](const std::shared_ptr<const Blocks>& blocks) {
    return blocks ? blocks->total() - blocks->counts[r] : (p.size - 1) * p.count;
  };
  Cost cost;
  cost.rounds = p.size - 1;
  cost.depth = p.size > 1 ? 1 : 0;
  cost.sent = others(p.input_blocks);
  cost.received = others(p.output_blocks);
  cost.scratch = staged(p) ? extent(p) : 0;
  return cost;
}

}  // namespace

extern const Row all_to_all_spread_out{
    .collective = Collective::all_to_all,
    .name = "spread_out",
    .place = 1,
    .generate = generate,
    .cost = cost,
    .uneven = true,
    .rounds = "P-1",
    .depth = "1",
    .sent = "(P-1)n",
    .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"};

}  // namespace baton::algorithms
