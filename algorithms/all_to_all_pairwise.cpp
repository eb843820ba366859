#include <bit>

#include "row.hpp"

namespace baton::algorithms {
namespace {

int rounds_of(const Problem& p) { return p.size % 2 == 0 ? p.size - 1 : p.size; }

/// Whom the rank meets in a round, 0 to rounds_of(p) - 1; the rank itself if nobody. For a power of
/// two, r ^ (round + 1), so that rounds stay within aligned groups of ranks as long as they can;
/// otherwise those meet whose ranks add up to the round modulo P, or modulo P - 1 if P is even,
/// where the last rank meets the one that would be left over.
int partner(const Problem& p, int round) {
  if (std::has_single_bit(static_cast<unsigned>(p.size))) {
    return round + 1 < p.size ? p.rank ^ (round + 1) : p.rank;
  }
  const int circle = rounds_of(p);
  if (p.rank == circle) return round % 2 == 0 ? round / 2 : (round + circle) / 2;
  const int other = (round - p.rank + circle) % circle;
  return other == p.rank && circle < p.size ? circle : other;
}

/// In place: whether each block is received where the one for the same rank was sent from.
bool exchanged(const Problem& p) {
  if (p.uneven()) return p.input_blocks && p.output_blocks && *p.input_blocks == *p.output_blocks;
  return p.size == 1 || p.input_rows == p.output_rows;
}

/// Whether blocks are sent from a copy of the input, since receives overwrite several of them.
bool staged(const Problem& p) { return p.in_place && !exchanged(p); }

std::int64_t extent(const Problem& p) {
  return p.input_blocks ? p.input_blocks->extent() : p.size * p.count;
}

/// Pairwise all-to-all: in each round ranks meet in pairs, as in a tournament, and exchange blocks.
///
/// Rounds   P-1, +1 if P is odd: of an odd number of ranks each sits one round out.
/// Sent     (P-1)n elements: all blocks but its own.
/// Domain   any P >= 1, any counts, even or not, any pair of dimensions; blocks may be empty.
/// Scratch  none; in place, if blocks lie elsewhere in the output than in the input, the input's
///          extent (P n elements if even), and otherwise a slot for the block that is exchanged.
/// Source   power of two: Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication
///          Operations in MPICH", IJHPCA 19(1), 2005; otherwise: Sanders & Träff, "The Hierarchical
///          Factor Algorithm for All-to-All Communication", Euro-Par 2002.
Schedule generate(const Problem& p) {
  ScheduleBuilder pairwise(p);
  const Chunks in = pairwise.input_blocks(), out = pairwise.output_blocks();
  const Region stage = pairwise.scratch(staged(p) ? extent(p) : 0);
  const auto source = [&](Region region) {
    if (!staged(p)) return region;
    region.buffer = stage.buffer;
    region.offset += stage.offset;
    return region;
  };
  if (staged(p)) {
    const Regions all = p.uneven() ? in.range(0, p.size) : Regions{pairwise.input()};
    for (const Region& region : all) pairwise.copy(source(region), region);
  }
  for (int round = 0; round < rounds_of(p); ++round) {
    if (const int peer = partner(p, round); peer != p.rank) {
      pairwise.send(peer, source(in[peer]));
      if (p.in_place && !staged(p)) {
        pairwise.recv_late(peer, out[peer]);
      } else {
        pairwise.recv(peer, out[peer]);
      }
    }
    pairwise.end_round();
  }
  pairwise.copy(out[p.rank], source(in[p.rank]));
  return pairwise.build("pairwise");
}

Cost cost(const Problem& p) {
  const auto r = static_cast<std::size_t>(p.rank);
  const auto others = [&](const std::shared_ptr<const Blocks>& blocks) {
    return blocks ? blocks->total() - blocks->counts[r] : (p.size - 1) * p.count;
  };
  Cost cost;
  cost.rounds = p.size == 1 ? 0 : rounds_of(p);
  cost.sent = others(p.input_blocks);
  cost.received = others(p.output_blocks);
  cost.scratch = staged(p) ? extent(p) : 0;
  return cost;
}

}  // namespace

extern const Row all_to_all_pairwise{
    .collective = Collective::all_to_all,
    .name = "pairwise",
    .place = 2,
    .generate = generate,
    .cost = cost,
    .uneven = true,
    .rounds = "P-1, +1 if P is odd",
    .sent = "(P-1)n",
    .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005; Sanders & Träff, Euro-Par 2002"};

}  // namespace baton::algorithms
