#include <algorithm>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// Whether blocks are sent from a copy of the input, since receives overwrite it.
bool staged(const Problem& p) { return p.in_place && p.size > 1; }
std::int64_t extent(const Problem& p) { return p.size * p.count; }
/// Blocks at distance 0, 1 and 2 are never under way.
std::int64_t under_way(const Problem& p) { return std::max(0, p.size - 3) * p.count; }

/// Bruck's all-to-all: the block for rank r + j hops by the powers of two that j is the sum of, and
/// travels with all others that hop the same way.
///
/// In round d each rank sends the blocks at distances j that have d, descending, to r + d: those at
/// an odd multiple of d start here, from the input; the others are under way, in scratch. Those
/// below 2 d arrive. So nothing is rotated, neither before nor after.
///
/// Rounds   ceil(log2 P).
/// Sent     at most nP ceil(log2 P)/2: n elements for each j < P and each 1 in j's binary form.
/// Domain   any P >= 1, even counts, any pair of dimensions.
/// Scratch  (P - 3) n elements for P > 3; in place, P n more for P > 1. Slots of about P n / 2.
/// Source   Bruck, Ho, Kipnis, Upfal & Weathersby, "Efficient Algorithms for All-to-All
///          Communications in Multiport Message-Passing Systems", IEEE TPDS 8(11), 1997; without
///          rotations: Träff, Rougier & Hunold, "Implementing a Classic: Zero-Copy All-to-All
///          Communication with MPI Datatypes", ICS 2014.
Schedule generate(const Problem& p) {
  ScheduleBuilder bruck(p);
  const Chunks in = bruck.input_blocks(), out = bruck.output_blocks();
  const Region stage = bruck.scratch(staged(p) ? extent(p) : 0);
  const auto source = [&](int i) {
    return staged(p) ? contiguous(stage.buffer, stage.offset + p.modulo(i) * p.count, p.count)
                     : in[i];
  };
  if (staged(p)) bruck.copy(Regions{stage}, in.range(0, p.size));

  const Region scratch = bruck.scratch(under_way(p));
  const auto held = [&](int j, int n) {  // at distances j, j - 1, …, n of them
    return contiguous(scratch.buffer, scratch.offset + (p.size - 1 - j) * p.count, n * p.count);
  };
  for (int d = 1; d < p.size; d *= 2) {
    Regions leaving, arriving;
    for (int low = ((p.size - 1) / d - 1) / 2 * 2 * d + d; low > 0; low -= 2 * d) {
      const int high = std::min(low + d, p.size) - 1;  // distances low … high have d
      if (low < high) leaving.push_back(held(high, high - low));
      leaving.push_back(source(p.rank + low));
      if (low > d) {
        arriving.push_back(held(high, high - low + 1));
      } else {
        const Regions last = out.range(p.rank - high, high - low + 1);
        arriving.insert(arriving.end(), last.begin(), last.end());
      }
    }
    bruck.send(p.rank_after(d), leaving);
    if (d > 1 && 3 * d + 1 < p.size) {
      bruck.recv_late(p.rank_before(d), arriving);  // into places that it is sent from
    } else {
      bruck.recv(p.rank_before(d), arriving);
    }
    bruck.end_round();
  }
  bruck.copy(out[p.rank], source(p.rank));
  return bruck.build("bruck");
}

Cost cost(const Problem& p) {
  Cost cost;
  cost.rounds = ceil_log2(p.size);
  for (std::int64_t d = 1; d < p.size; d *= 2) {
    const std::int64_t having =
        p.size / (2 * d) * d + std::max<std::int64_t>(0, p.size % (2 * d) - d);
    cost.sent += having * p.count;
  }
  cost.received = cost.sent;
  cost.scratch = under_way(p) + (staged(p) ? extent(p) : 0);
  return cost;
}

}  // namespace

extern const Row all_to_all_bruck{
    .collective = Collective::all_to_all,
    .name = "bruck",
    .place = 3,
    .generate = generate,
    .cost = cost,
    .rounds = "ceil(log2 P)",
    .sent = "at most nP ceil(log2 P)/2",
    .source = "Bruck et al., IEEE TPDS 8(11), 1997; Träff, Rougier & Hunold, ICS 2014"};

}  // namespace baton::algorithms
