#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace baton::proving {

/// The content of an element as a number: equal numbers are equal expressions. 0 is undefined; 1 +
/// i is leaf i; larger numbers are folds and divided values.
using Value = std::uint32_t;
/// A result of undefined data, which was reported when it was read.
inline constexpr Value unknown = std::numeric_limits<Value>::max();

/// The leaves of each rank: rank r has base[r] … base[r + 1] - 1.
using LeafBases = std::span<const std::uint32_t>;

/// The expected value of a reduced element.
struct Reduction {
  std::uint32_t offset;  ///< of the element in each rank's leaves
  int ranks;             ///< ranks 0 … ranks - 1 contribute once each
  bool ordered;          ///< … in this order
  bool divided;          ///< once, at the end
};

/// All expressions of one verification.
class Expressions {
 public:
  /// Forgets all expressions. At most `operations` folds and divisions may follow.
  void reset(LeafBases bases, std::uint32_t operations);
  /// The expression left (+) right.
  Value fold(Value left, Value right) {
    return left == unknown || right == unknown ? unknown : intern(left, right);
  }
  /// The expression x / ranks.
  Value divide(Value x) { return x == unknown ? unknown : intern(x, 0); }

  enum class Verdict { good, out_of_order, wrong };
  Verdict check(Value value, const Reduction& expected);
  /// For example "1 + (0 + 2)", by rank. A leaf at another offset than `offset` carries its own,
  /// times `unit`.
  std::string print(Value value, std::uint32_t offset, std::int64_t unit) const;

 private:
  struct Node {
    Value left, right;  // right = 0: a division
  };
  Value intern(Value left, Value right);
  bool is_leaf(Value value) const { return value <= leaves_; }
  const Node& node(Value value) const { return nodes_[value - leaves_ - 1]; }
  int rank_of(Value leaf) const;

  LeafBases bases_;
  std::uint32_t leaves_ = 0;
  std::vector<std::uint32_t> rank_of_leaf_;
  std::vector<Node> nodes_;
  std::vector<Value> table_;  // open addressing; 0 is free
  std::uint32_t mask_ = 0;
  std::vector<std::uint32_t> met_;  // per rank, the last check that visited it
  std::uint32_t check_ = 0;
  std::vector<Value> stack_;
};

}  // namespace baton::proving
