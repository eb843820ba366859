#include <algorithm>
#include <bit>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// A power of two of teams, of two ranks each at first and of one from then on. The first rank of a
/// team exchanges with other teams' first ranks; the other one only with its own.
struct Teams {
  explicit Teams(const Problem& p)
      : count(static_cast<int>(std::bit_floor(static_cast<unsigned>(p.size)))),
        pairs(p.size - count),
        own(p.rank < 2 * pairs ? p.rank / 2 : p.rank - pairs),
        paired(own < pairs),
        second(p.rank != first(own)) {}

  /// First rank of team t; the number of ranks for t = count.
  int first(int t) const { return t + std::min(t, pairs); }

  int count, pairs, own;
  bool paired, second;
};

/// Recursive doubling all-gather: partners at distance 1, 2, 4, … exchange all that they have.
///
/// Of P ranks, P - Q are beyond the largest power of two, Q. As many teams have a second rank,
/// which hands its block to the first before, and gets the others from it after.
///
/// Rounds   log2 Q, +2 if Q < P.
/// Sent     (P-1)n if Q = P, else at most 2.4nP. Where Q < P, a team's first rank sends in each
///          round the blocks of its team and of those beside it, and in the end all but its mate's
///          block; its mate sends its own block.
/// Domain   any P >= 1, any counts, even or not, along any dimension; blocks may be empty.
/// Scratch  none.
/// Source   Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in
///          MPICH", IJHPCA 19(1), 2005.
Schedule generate(const Problem& p) {
  ScheduleBuilder doubling(p);
  const Chunks block = doubling.output_blocks();
  const Teams team(p);
  const int mate = team.second ? p.rank - 1 : p.rank + 1;

  if (team.second) {
    doubling.send(mate, doubling.input());
    doubling.end_round();
    doubling.copy(block[p.rank], doubling.input());
    for (int d = 1; d < team.count; d *= 2) doubling.end_round();
    doubling.recv(mate, block.range(p.rank + 1, p.size - 1));
    return doubling.build("recursive_doubling");
  }

  doubling.copy(block[p.rank], doubling.input());
  if (team.paired) doubling.recv(mate, block[mate]);
  if (team.pairs > 0) doubling.end_round();
  const auto gathered = [&](int t, int d) {  // by team t from its group of d teams
    const int begin = team.first(t & -d), end = team.first((t & -d) + d);
    return block.range(begin, end - begin);
  };
  for (int d = 1; d < team.count; d *= 2) {
    const int partner = team.own ^ d;
    doubling.send(team.first(partner), gathered(team.own, d));
    doubling.recv(team.first(partner), gathered(partner, d));
    doubling.end_round();
  }
  if (team.paired) doubling.send(mate, block.range(mate + 1, p.size - 1));
  return doubling.build("recursive_doubling");
}

Cost cost(const Problem& p) {
  const Teams team(p);
  const std::int64_t total = p.total_count(), own = p.block_count(p.rank);
  Cost cost;
  cost.rounds = ceil_log2(team.count) + (team.pairs > 0 ? 2 : 0);
  cost.received = total - own;
  if (team.second) {
    cost.sent = own;
    return cost;
  }
  for (int d = 1; d < team.count; d *= 2) {
    const int begin = team.first(team.own & -d), end = team.first((team.own & -d) + d);
    if (p.uneven()) {
      for (int i = begin; i < end; ++i) cost.sent += p.block_count(i);
    } else {
      cost.sent += (end - begin) * p.count;
    }
  }
  if (team.paired) cost.sent += total - p.block_count(p.rank + 1);
  return cost;
}

}  // namespace

extern const Row all_gather_recursive_doubling{
    .collective = Collective::all_gather,
    .name = "recursive_doubling",
    .place = 3,
    .generate = generate,
    .cost = cost,
    .uneven = true,
    .rounds = "log2 Q, +2 if Q < P",
    .sent = "(P-1)n if Q = P, else at most 2.4nP",
    .source = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"};

}  // namespace baton::algorithms
