#pragma once
/// What a collective promises, element by element. Shares no code with inference and verifier.

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "baton/verify.hpp"

namespace interpreter {

using baton::Collective, baton::Flaw, baton::Problem;

using Address = std::size_t;  ///< of an element, through all buffers of a rank

/// Elements hold random 2 x 2 matrices, folded by multiplication: a product tells the order of its
/// factors, its determinant their set.
struct Value {
  std::array<std::uint64_t, 4> matrix{};
  std::uint64_t tree = 0;  ///< hash of the expression, parentheses included; 0: undefined
  bool divided = false;
  bool operator==(const Value&) const = default;
};

constexpr std::uint64_t prime = 4294967291;

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15 + b + 0x632be59bd9b4e019;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

/// Element `e` of a rank's input.
inline Value leaf(int rank, std::int64_t e) {
  const std::uint64_t seed = mix(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(e));
  Value value{{}, seed | 1};
  for (std::uint64_t i = 0; i < 4; ++i) value.matrix[i] = mix(seed, i) % prime;
  return value;
}

inline Value fold(const Value& x, const Value& y) {
  if (x.tree == 0 || y.tree == 0) return {};
  const std::uint64_t tree = mix(x.tree, y.tree) | 1;
  if (x.divided || y.divided) return {{}, tree};  // divided too early: equal to no result
  const auto& [a, b, c, d] = x.matrix;
  const auto& [e, f, g, h] = y.matrix;
  const auto dot = [](std::uint64_t p, std::uint64_t q, std::uint64_t r, std::uint64_t s) {
    return (p * q % prime + r * s % prime) % prime;
  };
  return {{dot(a, e, b, g), dot(a, f, b, h), dot(c, e, d, g), dot(c, f, d, h)}, tree};
}

inline Value divide(const Value& x) {
  if (x.tree == 0) return {};
  if (x.divided) return {{}, mix(x.tree, 1) | 1};
  return {x.matrix, mix(x.tree, 1) | 1, true};
}

inline std::uint64_t determinant(const Value& x) {
  const auto& [a, b, c, d] = x.matrix;
  return (a * d % prime + prime - b * c % prime) % prime;
}

/// Where element k of block i lies in a buffer that has a block per rank.
inline std::int64_t place(const Problem& p, bool input, int i, std::int64_t k) {
  if (const auto& blocks = input ? p.input_blocks : p.output_blocks) {
    return blocks->offsets[static_cast<std::size_t>(i)] + k;
  }
  const std::int64_t row = p.count / (input ? p.input_rows : p.output_rows);
  return (k / row * p.size + i) * row + k % row;
}

/// What a rank's buffers hold at first, and what they are to hold at the end.
struct Promise {
  struct Result {
    Address at;
    int first, last;  // ranks whose elements fold, in order
    std::int64_t element;
  };

  Promise(std::span<const Problem> problems, std::size_t rank) {
    const Problem& p = problems[rank];
    const int r = p.rank;
    const std::int64_t output = p.input_extent();  // address of output[0]
    memory.resize(static_cast<std::size_t>(output + p.output_extent()));
    const auto holds = [&](std::int64_t at, std::int64_t element) {
      memory[static_cast<std::size_t>(at)] = leaf(r, element);
    };
    const auto gets = [&](std::int64_t at, int first, int last, std::int64_t element) {
      results.push_back({static_cast<Address>(at), first, last, element});
    };
    const bool root = r == p.root, cut_in = p.collective == Collective::scatter ||
                                            p.collective == Collective::reduce_scatter;
    const bool gathers =
        p.collective == Collective::gather || p.collective == Collective::all_gather;

    if (gathers && p.aliased()) {
      for (std::int64_t k = 0; k < p.block_count(r); ++k) holds(output + place(p, false, r, k), k);
    } else if (p.collective == Collective::broadcast
                   ? root
                   : p.collective != Collective::scatter || root) {
      const bool in_output = p.aliased() && !cut_in;
      const std::int64_t begin = in_output ? output : 0;
      const std::int64_t end = in_output ? output + p.output_extent() : output;
      for (std::int64_t at = begin; at < end; ++at) holds(at, at - begin);
    }

    switch (p.collective) {
      case Collective::broadcast:
        for (std::int64_t e = 0; e < p.count; ++e) gets(output + e, p.root, p.root, e);
        break;
      case Collective::reduce:
      case Collective::all_reduce:
      case Collective::scan:
      case Collective::exscan: {
        const int last = p.collective == Collective::scan     ? r
                         : p.collective == Collective::exscan ? r - 1
                                                              : p.size - 1;
        if (last < 0 || (p.collective == Collective::reduce && !root)) break;
        for (std::int64_t e = 0; e < p.count; ++e) gets(output + e, 0, last, e);
        break;
      }
      case Collective::gather:
      case Collective::all_gather:
        for (int i = 0; i < p.size && (root || p.collective == Collective::all_gather); ++i) {
          for (std::int64_t k = 0; k < p.block_count(i); ++k)
            gets(output + place(p, false, i, k), i, i, k);
        }
        break;
      case Collective::scatter:
      case Collective::reduce_scatter: {
        const bool scatter = p.collective == Collective::scatter;
        const Problem& from = scatter ? problems[static_cast<std::size_t>(p.root)] : p;
        for (std::int64_t k = 0; k < p.block_count(r); ++k) {
          const std::int64_t e = place(from, true, r, k);
          gets(p.aliased() ? e : output + k, scatter ? p.root : 0, scatter ? p.root : p.size - 1,
               e);
        }
        break;
      }
      case Collective::all_to_all:
        for (int i = 0; i < p.size; ++i) {
          const auto& blocks = p.output_blocks;
          const auto n = blocks ? blocks->counts[static_cast<std::size_t>(i)] : p.count;
          for (std::int64_t k = 0; k < n; ++k) {
            gets(output + place(p, false, i, k), i, i,
                 place(problems[static_cast<std::size_t>(i)], true, r, k));
          }
        }
        break;
      case Collective::barrier:
      case Collective::program:
        break;
    }
  }

  /// What is wrong with a rank's memory at the end. `agreed` holds for each result of an all_reduce
  /// the expression that lower ranks have found, 0 if none.
  std::set<Flaw> judge(const Problem& p, const std::vector<Value>& found,
                       std::vector<std::uint64_t>& agreed) const {
    std::set<Flaw> flaws;
    std::vector<Value> left = memory;  // what is no result stays as it was
    agreed.resize(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto& [at, first, last, element] = results[i];
      const Value& value = left[at] = found[at];
      Value want = leaf(first, element);
      for (int q = first + 1; q <= last; ++q) want = fold(want, leaf(q, element));
      if (reducing(p.collective) && p.average) want = divide(want);
      if (reducing(p.collective)
              ? value.divided != want.divided || determinant(value) != determinant(want)
              : value != want) {
        flaws.insert(Flaw::contribution);
      } else if (!p.commutative && value.matrix != want.matrix) {
        flaws.insert(Flaw::order);
      } else if (p.collective == Collective::all_reduce) {
        if (agreed[i] == 0) agreed[i] = value.tree;
        if (agreed[i] != value.tree) flaws.insert(Flaw::disagree);
      }
    }
    if (!std::equal(left.begin(), left.end(), found.begin())) flaws.insert(Flaw::clobbered);
    return flaws;
  }

  std::vector<Value> memory;  // of input and output
  std::vector<Result> results;
};

}  // namespace interpreter
