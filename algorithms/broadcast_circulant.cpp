#include <algorithm>
#include <array>
#include <bitset>
#include <cassert>

#include "row.hpp"

namespace baton::algorithms {
namespace {

constexpr int max_rounds = 31;  // of one phase: ranks are ints

/// The pattern of circulant broadcasts among P ranks, in phases of q = ceil(log2 P) rounds. Rank v
/// (counted from the root) sends to v + skip[k] and receives from v - skip[k] in round k of each.
struct Circulant {
  using Blocks = std::array<int, max_rounds>;

  explicit Circulant(int size) : size(size), q(ceil_log2(size)) {
    for (int k = q, s = size; k >= 0; --k, s = (s + 1) / 2) skip[k] = s;
  }

  /// The last skip in the greedy decomposition of size + v into different skips: the block that
  /// rank v gets first. q for the root.
  int base_block(int v) const {
    int base = q;
    for (int e = q, x = 0; x < size + v; --e) {
      if (x + skip[e] <= size + v) x += skip[base = e];
    }
    return base;
  }

  /// The block that rank v receives in each round of the phase: its base block in one, and in the
  /// others all but one of -1 … -q, blocks of the phase before. In round k it is the base block of
  /// a rank in (v - skip[k + 1], v - skip[k]], below the one found last, reached by the largest
  /// skips that are not yet chosen; or, where there is none, of the nearest rank further down.
  Blocks received(int v) const {
    Blocks blocks{};
    const int base = base_block(v);
    std::bitset<max_rounds + 1> chosen;
    chosen.set(base);
    for (int k = 0, found = 2 * size; k < q; ++k) {
      const int low = size + v - skip[k + 1], high = std::min(size + v - skip[k], found - 1);
      int block = -1, x = 0;
      for (int e = q; e >= 0 && x <= low; --e) {
        if (!chosen[e] && x + skip[e] <= high) x += skip[block = e];
      }
      assert(block >= 0);
      chosen.set(block);
      found = x;
      blocks[k] = block == q ? base : block - q;
    }
    return blocks;
  }

  /// The block that rank v sends in each round of the phase: what the other side receives.
  Blocks sent(int v) const {
    Blocks blocks{};
    for (int k = 0; k < q; ++k) blocks[k] = received((v + skip[k]) % size)[k];
    return blocks;
  }

  int size, q;
  std::array<int, max_rounds + 1> skip{};
};

/// Circulant broadcast: n blocks (problem.blocks) flow through a circulant graph, and from the
/// ceil(log2 P)-th round on every rank receives a new one in each round.
///
/// Each phase of q rounds repeats the pattern of the first with blocks larger by q. Blocks below 0
/// are not sent, those beyond the last are the last, and nothing is sent to the root.
///
/// Rounds   blocks-1 + ceil(log2 P), the least possible.
/// Sent     n(blocks-1 + ceil(log2 P))/blocks by the root. By each other rank: at most one block a
///          round, as its pattern says. Received by each rank but the root: all elements, once.
/// Domain   any P, root, count and number of blocks >= 1; blocks may be empty.
/// Scratch  none.
/// Source   Träff, "Round-optimal n-Block Broadcast Schedules in Logarithmic Time",
///          arXiv:2312.11236, 2023. The search for the blocks starts anew for every round here,
///          which is shorter and takes O(log^3 P) for a rank instead of O(log P).
Schedule generate(const Problem& p) {
  ScheduleBuilder graph(p);
  if (p.size == 1) return graph.build("circulant");
  const Circulant pattern(p.size);
  const int v = p.modulo(p.rank - p.root), q = pattern.q, last = p.blocks - 1;
  const auto sent = pattern.sent(v), received = pattern.received(v);
  const Chunks block = graph.chunks(graph.output(), p.blocks);

  const int idle =
      (q - last % q) % q;  // rounds of the first phase left out, so that the last is whole
  for (int t = idle; t < idle + last + q; ++t) {
    const int k = t % q, shift = t / q * q - idle;
    const int out = std::min(sent[k] + shift, last), in = std::min(received[k] + shift, last);
    const int next = p.rank_after(pattern.skip[k]), prev = p.rank_before(pattern.skip[k]);
    if (out >= 0 && next != p.root) graph.send(next, block[out]);
    if (in >= 0 && v != 0) graph.recv(prev, block[in]);
    graph.end_round();
  }
  return graph.build("circulant");
}

Cost cost(const Problem& p) {
  Cost cost;
  if (p.size == 1) return cost;
  const Circulant pattern(p.size);
  const int v = p.modulo(p.rank - p.root), q = pattern.q, n = p.blocks;
  const auto sent = pattern.sent(v);
  const int idle = (q - (n - 1) % q) % q;
  for (int k = 0; k < q; ++k) {
    if (p.rank_after(pattern.skip[k]) == p.root) continue;
    // In the phases but the last, blocks first, first + q, …; in the last, `final`.
    int first = sent[k] - idle + (k < idle ? q : 0);
    while (first < 0) first += q;
    const int final = std::min(sent[k], 0) + n - 1;
    if (final < 0) continue;
    const auto below = [&](std::int64_t end) {  // how many of first, first + q, … are below `end`
      return end > first ? (end - first + q - 1) / q : 0;
    };
    cost.sent += below(final) * (p.count / n) + below(std::min<std::int64_t>(final, p.count % n)) +
                 chunk_count(p.count, n, final);
  }
  cost.rounds = n - 1 + q;
  cost.received = v == 0 ? 0 : p.count;
  return cost;
}

}  // namespace

extern const Row broadcast_circulant{.collective = Collective::broadcast,
                                     .name = "circulant",
                                     .place = 6,
                                     .generate = generate,
                                     .cost = cost,
                                     .pipelined = true,
                                     .rounds = "blocks-1 + ceil(log2 P)",
                                     .sent = "n(blocks-1 + ceil(log2 P))/blocks by the root",
                                     .source = "Träff, arXiv:2312.11236, 2023"};

}  // namespace baton::algorithms
