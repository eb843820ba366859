#include "expressions.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

namespace baton::proving {

void Expressions::reset(LeafBases bases, std::uint32_t operations) {
  bases_ = bases;
  leaves_ = bases.back();
  rank_of_leaf_.clear();
  for (std::uint32_t r = 0; r + 1 < bases.size(); ++r) rank_of_leaf_.resize(bases[r + 1], r);
  nodes_.clear();
  const std::uint64_t room = std::bit_ceil(std::uint64_t{operations} * 2 + 2);
  table_.assign(room, 0);
  mask_ = static_cast<std::uint32_t>(room - 1);
  met_.assign(bases.size(), 0);
  check_ = 0;
}

Value Expressions::intern(Value left, Value right) {
  const std::uint64_t key = (std::uint64_t{left} << 32 | right) * 0x9e3779b97f4a7c15ull;
  for (auto at = static_cast<std::uint32_t>(key >> 32);; ++at) {
    Value& entry = table_[at & mask_];
    if (entry == 0) {
      nodes_.push_back({left, right});
      return entry = leaves_ + static_cast<Value>(nodes_.size());
    }
    if (node(entry).left == left && node(entry).right == right) return entry;
  }
}

int Expressions::rank_of(Value leaf) const { return static_cast<int>(rank_of_leaf_[leaf - 1]); }

Expressions::Verdict Expressions::check(Value value, const Reduction& expected) {
  if (expected.divided) {
    if (value == 0 || is_leaf(value) || node(value).right != 0) return Verdict::wrong;
    value = node(value).left;
  }
  ++check_;
  int met = 0, last = -1;
  bool ordered = true;
  stack_.assign(1, value);
  while (!stack_.empty()) {
    const Value x = stack_.back();
    stack_.pop_back();
    if (x == 0) return Verdict::wrong;
    if (!is_leaf(x)) {
      if (node(x).right == 0) return Verdict::wrong;  // divided before the end
      stack_.push_back(node(x).right);
      stack_.push_back(node(x).left);
      continue;
    }
    // Ends at a rank's second contribution, so the walk visits at most as many leaves as there are
    // ranks.
    const int rank = rank_of(x);
    const auto r = static_cast<std::size_t>(rank);
    if (rank >= expected.ranks || x - 1 - bases_[r] != expected.offset || met_[r] == check_) {
      return Verdict::wrong;
    }
    met_[r] = check_;
    ordered = ordered && rank > last;
    last = rank;
    ++met;
  }
  if (met != expected.ranks) return Verdict::wrong;
  return ordered || !expected.ordered ? Verdict::good : Verdict::out_of_order;
}

std::string Expressions::print(Value value, std::uint32_t offset, std::int64_t unit) const {
  constexpr std::size_t most = 160;  // characters, roughly
  if (value == 0) return "nothing";
  std::string text;
  struct Part {
    Value value;  // 0: only text
    const char* text;
  };
  std::vector<Part> parts{{value, ""}};
  while (!parts.empty() && text.size() < most) {
    const Part part = parts.back();
    parts.pop_back();
    text += part.text;
    if (part.value == 0) continue;
    if (is_leaf(part.value)) {
      const int rank = rank_of(part.value);
      const std::uint32_t at = part.value - 1 - bases_[static_cast<std::size_t>(rank)];
      text += at == offset ? fmt::format("{}", rank) : fmt::format("{}[{}]", rank, at * unit);
    } else if (node(part.value).right == 0) {
      text += "avg(";
      parts.push_back({0, ")"});
      parts.push_back({node(part.value).left, ""});
    } else {
      const Value left = node(part.value).left, right = node(part.value).right;
      const auto bare = [&](Value x) { return is_leaf(x) || node(x).right == 0; };
      if (!bare(right)) parts.push_back({0, ")"});
      parts.push_back({right, bare(right) ? " + " : " + ("});
      if (!bare(left)) {
        parts.push_back({0, ")"});
        text += '(';
      }
      parts.push_back({left, ""});
    }
  }
  return parts.empty() ? text : text + " …";
}

}  // namespace baton::proving
