#include <algorithm>
#include <bit>
#include <utility>

#include "row.hpp"

namespace baton::algorithms {
namespace {

/// A rank's place in one of the two trees.
///
/// Positions 1, 2, … are numbered in order. The level of a position is the number of times that 2
/// divides it, odd positions are the leaves. The children of q at level l > 0 are q - 2^(l-1) and
/// q + 2^(l-1), or nearer, at a lower level, where the tree ends before that.
/// Tree 0 has rank r at position r + 1. Tree 1 is the mirror image of such a tree of E ranks, E = P
/// or P + 1 the even one: rank r at position E - r. So each rank is a leaf of just one of them.
struct Place {
  struct Child {
    int rank, level;
  };

  Place(const Problem& p, int tree) : tree(tree) {
    const int even = p.size + p.size % 2, end = tree == 0 ? p.size : even;
    const int position = tree == 0 ? p.rank + 1 : even - p.rank;
    const auto rank_at = [&](int q) { return tree == 0 ? q - 1 : even - q; };
    level = std::countr_zero(static_cast<unsigned>(position));
    for (int above = level + 1; parent < 0 && (1 << above) <= end; ++above) {
      const int ancestor = (position >> (above + 1) << (above + 1)) + (1 << above);
      if (ancestor <= end) parent = rank_at(ancestor);
    }
    if (level == 0) return;
    int right = level - 1;
    while (right >= 0 && position + (1 << right) > end) --right;
    if (right >= 0) child[children++] = {rank_at(position + (1 << right)), right};
    const int left = rank_at(position - (1 << (level - 1)));  // rank P, a leaf, where E > P
    if (left < p.size) child[children++] = {left, level - 1};
    // Of two leaves the left is first: a rank above a single leaf is the first on the left in the
    // other tree, and must not be held up there.
    if (children == 2 && level == 1) std::swap(child[0], child[1]);
  }

  int tree, level = 0;
  int parent = -1;  // a rank, or -1 at the root
  int children = 0;
  Child child[2];  // in the order in which they are heard: the deeper subtree last
};

/// The place where this rank has children, and the one where it is a leaf.
Place inner_place(const Problem& p) { return Place(p, p.rank % 2 == 1 ? 0 : 1); }
Place leaf_place(const Problem& p) { return Place(p, p.rank % 2 == 1 ? 1 : 0); }

/// E, the even one of P and P + 1.
unsigned even_size(const Problem& p) { return static_cast<unsigned>(p.size + p.size % 2); }

/// Double-tree all-reduce: each half of the vector is reduced up a binary tree and broadcast down
/// it; the leaves of one tree are the inner nodes of the other, so all ranks send and receive
/// alike.
///
/// A rank sends as a leaf first and hears its own children then, the deeper subtree last: so leaves
/// wait for leaves only, and inner nodes for what is below them. The broadcast is the same
/// backwards.
///
/// Rounds   4 floor(log2 E) - 2, E = P + P mod 2: E is the even one of P and P + 1.
/// Sent     at most 2n elements, rounded: half the vector for each neighbour in each tree.
/// Domain   any P >= 1, any count.
/// Order    subtrees are contiguous: in rank order, at the roots only.
/// Scratch  none but slots of half the vector.
/// Source   Sanders, Speck & Träff, Two-tree algorithms for full bandwidth broadcast, reduction and
///          scan, Parallel Computing 35(12), 2009. Program order replaces its edge colouring.
Schedule generate(const Problem& p) {
  ScheduleBuilder trees(p);
  if (p.size == 1) {
    trees.reduced(trees.work());
    return trees.build("double_tree");
  }
  const Place inner = inner_place(p), leaf = leaf_place(p);
  const Chunks half = trees.chunks(2);
  const Region sum = half[inner.tree], other = half[leaf.tree];
  const int levels = static_cast<int>(std::bit_width(even_size(p))) - 1;
  const auto up = [&](int level) {  // rounds are labelled by the level of the child
    while (trees.round() < level) trees.end_round();
  };
  const auto down = [&](int level) { up(2 * levels - 1 - level); };

  trees.lane(leaf.tree);
  trees.send(leaf.parent, other);
  trees.lane(inner.tree);
  for (int i = 0; i < inner.children; ++i) {
    up(inner.child[i].level);
    trees.recv_reduce(inner.child[i].rank, sum);
  }
  if (inner.parent >= 0) {
    up(inner.level);
    trees.send(inner.parent, sum);
    down(inner.level);
    trees.recv(inner.parent, sum);
  } else {
    trees.reduced(sum);
  }
  for (int i = inner.children - 1; i >= 0; --i) {
    down(inner.child[i].level);
    trees.send(inner.child[i].rank, sum);
  }
  down(0);
  trees.lane(leaf.tree);
  trees.recv(leaf.parent, other);
  return trees.build("double_tree");
}

Cost cost(const Problem& p) {
  Cost cost;
  if (p.size == 1) return cost;
  const unsigned even = even_size(p);
  int ready = 2 * std::countr_zero(even) - 1;  // when a root has its sum
  for (int k = std::countr_zero(even) + 1; k < static_cast<int>(std::bit_width(even)); ++k) {
    if (even >> k & 1u) ready = 1 + std::max(ready + 1, 2 * k - 2);
  }
  cost.rounds = 2 * ready;
  cost.path = cost.rounds * chunk_count(p.count, 2, 0);
  const Place inner = inner_place(p), leaf = leaf_place(p);
  const int neighbours = inner.children + (inner.parent >= 0);
  cost.sent = neighbours * chunk_count(p.count, 2, inner.tree) + chunk_count(p.count, 2, leaf.tree);
  cost.received = cost.sent;
  cost.folded = inner.children * chunk_count(p.count, 2, inner.tree);
  return cost;
}

}  // namespace

extern const Row all_reduce_double_tree{
    .collective = Collective::all_reduce,
    .name = "double_tree",
    .place = 5,
    .generate = generate,
    .cost = cost,
    .ordered = true,
    .rounds = "4 floor(log2 E) - 2, E = P + P mod 2",
    .sent = "at most 2n",
    .source = "Sanders, Speck & Träff, Parallel Computing 35(12), 2009"};

}  // namespace baton::algorithms
