#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "program.hpp"

namespace baton::proving {

/// The places of the blocks in a buffer with one block per rank.
class BlockPlaces {
 public:
  BlockPlaces(const Problem& problem, const std::shared_ptr<const Blocks>& blocks,
              std::int64_t rows)
      : blocks_(blocks.get()), count_(problem.count), rows_(rows), size_(problem.size) {}

  std::int64_t count(int i) const {
    return blocks_ ? blocks_->counts[static_cast<std::size_t>(i)] : count_;
  }
  /// The place of element k of block i.
  std::int64_t at(int i, std::int64_t k) const {
    if (blocks_) return blocks_->offsets[static_cast<std::size_t>(i)] + k;
    const std::int64_t row = count_ / rows_;
    return rows_ == 1 ? i * count_ + k : (k / row * size_ + i) * row + k % row;
  }
  /// The number of adjacent elements from k on.
  std::int64_t run(int i, std::int64_t k) const {
    if (blocks_ || rows_ == 1) return count(i) - k;
    const std::int64_t row = count_ / rows_;
    return row - k % row;
  }

 private:
  const Blocks* blocks_;
  std::int64_t count_, rows_;
  int size_;
};

/// The promise of a collective: the places of each rank's input at the start, and the result. Input
/// elements ("leaves") are numbered through all ranks, by their place in the caller's input.
class Promise {
 public:
  Promise(const Program& program, std::span<const Problem> problems);

  std::uint32_t leaves() const { return leaf_base_.back(); }
  /// First leaf of a rank.
  std::uint32_t leaf_base(int rank) const { return leaf_base_[static_cast<std::size_t>(rank)]; }
  const Problem& problem(int rank) const { return problems_[static_cast<std::size_t>(rank)]; }

  /// Calls visit(element, length, leaf) for the parts of the rank's input at the start.
  template <class Visit>
  void for_inputs(int rank, const Visit& visit) const;
  /// Calls copied(element, length, leaf) for parts of the rank's result that are another rank's
  /// input. Calls reduced(element, length, offset, ranks) for parts that are the reduction of ranks
  /// 0 … ranks - 1; `offset` counts in each rank's leaves.
  template <class Copied, class Reduced>
  void for_results(int rank, const Copied& copied, const Reduced& reduced) const;

 private:
  static BlockPlaces input_blocks(const Problem& p) { return {p, p.input_blocks, p.input_rows}; }
  static BlockPlaces output_blocks(const Problem& p) { return {p, p.output_blocks, p.output_rows}; }
  std::uint32_t scaled(std::int64_t elements) const {
    return static_cast<std::uint32_t>(unit_ == 1 ? elements : elements / unit_);
  }
  std::int64_t leaf_extent(const Problem& problem) const;

  const Program& program_;
  std::span<const Problem> problems_;
  std::int64_t unit_;
  std::vector<std::uint32_t> leaf_base_;
};

inline Promise::Promise(const Program& program, std::span<const Problem> problems)
    : program_(program), problems_(problems), unit_(program.unit()) {
  leaf_base_.reserve(problems.size() + 1);
  leaf_base_.push_back(0);
  for (const Problem& problem : problems) {
    leaf_base_.push_back(leaf_base_.back() + scaled(leaf_extent(problem)));
  }
}

/// Elements of the rank's input with the gaps between its blocks, in whichever buffer.
inline std::int64_t Promise::leaf_extent(const Problem& p) const {
  switch (p.collective) {
    case Collective::program:
      return 0;
    case Collective::broadcast:
      return p.rank == p.root ? p.count : 0;
    case Collective::barrier:
      return 1;
    case Collective::scatter:
      if (p.rank != p.root) return 0;
      [[fallthrough]];
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return p.input_blocks ? p.input_blocks->extent() : p.size * p.count;
    default:
      return p.count;
  }
}

template <class Visit>
void Promise::for_inputs(int rank, const Visit& visit) const {
  const Problem& p = problem(rank);
  const std::uint32_t leaf = leaf_base(rank), length = leaf_base(rank + 1) - leaf;
  if (!p.aliased() || scattering(p.collective)) {
    visit(program_.place(rank, Buffer::input), length, leaf);
  } else if (!gathering(p.collective)) {
    visit(program_.place(rank, Buffer::output), length, leaf);
  } else {
    const BlockPlaces blocks = output_blocks(p);
    for (std::int64_t k = 0, n = 0; k < blocks.count(rank); k += n) {
      n = blocks.run(rank, k);
      visit(program_.place(rank, Buffer::output) + scaled(blocks.at(rank, k)), scaled(n),
            leaf + scaled(k));
    }
  }
}

template <class Copied, class Reduced>
void Promise::for_results(int rank, const Copied& copied, const Reduced& reduced) const {
  const Problem& p = problem(rank);
  const std::uint32_t output = program_.place(rank, Buffer::output);
  switch (p.collective) {
    case Collective::broadcast:
      copied(output, scaled(p.count), leaf_base(p.root));
      break;
    case Collective::reduce:
      if (rank == p.root) reduced(output, scaled(p.count), 0u, p.size);
      break;
    case Collective::all_reduce:
      reduced(output, scaled(p.count), 0u, p.size);
      break;
    case Collective::scan:
      reduced(output, scaled(p.count), 0u, rank + 1);
      break;
    case Collective::exscan:
      if (rank > 0) reduced(output, scaled(p.count), 0u, rank);
      break;
    case Collective::gather:
      if (rank != p.root) break;
      [[fallthrough]];
    case Collective::all_gather: {
      const BlockPlaces to = output_blocks(p);
      for (int i = 0; i < p.size; ++i) {
        for (std::int64_t k = 0, n = 0; k < to.count(i); k += n) {
          n = to.run(i, k);
          copied(output + scaled(to.at(i, k)), scaled(n), leaf_base(i) + scaled(k));
        }
      }
      break;
    }
    case Collective::scatter:
    case Collective::reduce_scatter: {
      const bool scatter = p.collective == Collective::scatter;
      const BlockPlaces from = input_blocks(scatter ? problem(p.root) : p);
      const std::uint32_t input = program_.place(rank, Buffer::input);
      for (std::int64_t k = 0, n = 0; k < from.count(rank); k += n) {
        n = from.run(rank, k);
        const std::uint32_t source = scaled(from.at(rank, k));
        const std::uint32_t to = p.aliased() ? input + source : output + scaled(k);
        if (scatter) {
          copied(to, scaled(n), leaf_base(p.root) + source);
        } else {
          reduced(to, scaled(n), source, p.size);
        }
      }
      break;
    }
    case Collective::all_to_all: {
      const BlockPlaces to = output_blocks(p);
      for (int i = 0; i < p.size; ++i) {
        const BlockPlaces from = input_blocks(problem(i));
        for (std::int64_t k = 0, n = 0; k < to.count(i); k += n) {
          n = std::min(to.run(i, k), from.run(rank, k));
          copied(output + scaled(to.at(i, k)), scaled(n), leaf_base(i) + scaled(from.at(rank, k)));
        }
      }
      break;
    }
    case Collective::barrier:
    case Collective::program:
      break;
  }
}

}  // namespace baton::proving
