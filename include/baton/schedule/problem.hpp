#pragma once
/// The problem that an algorithm solves: a collective, seen from one rank.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "baton/collective.hpp"
#include "baton/schedule/hosts.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// Uneven block sizes and where the blocks lie, in elements; block i belongs to rank i.
struct Blocks {
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> offsets;

  /// Blocks laid one after the other.
  static std::shared_ptr<const Blocks> packed(std::span<const std::int64_t> counts);
  /// Blocks at given offsets.
  static std::shared_ptr<const Blocks> placed(std::span<const std::int64_t> counts,
                                              std::span<const std::int64_t> offsets);
  std::int64_t total() const;   ///< sum of the counts
  std::int64_t extent() const;  ///< one past the last element of any block
  bool operator==(const Blocks&) const = default;
};

/// A collective to be scheduled for one rank. All counts are elements.
///
/// | collective     | input            | output                 | in place means                  |
/// |----------------|------------------|------------------------|---------------------------------|
/// | broadcast      | -                | count                  | always                          |
/// | reduce         | count            | count, at root only    | at root: input is output        |
/// | all_reduce     | count            | count                  | input is output                 |
/// | gather         | count            | size * count, at root  | at root: input is own block     |
/// | scatter        | size*count, root | count                  | at root: output is own block    |
/// | all_gather     | count            | size * count           | input is own block of output    |
/// | reduce_scatter | size * count     | count                  | output is own block of input    |
/// | all_to_all     | size * count     | size * count           | input is output                 |
/// | scan, exscan   | count            | count                  | input is output                 |
/// | barrier        | count = 1, token | -                      | -                               |
/// | program        | -                | -                      | -                               |
struct Problem {
  Collective collective = Collective::all_reduce;
  int size = 1;
  int rank = 0;
  int root = 0;
  std::int64_t count = 0;
  bool in_place = false;
  bool commutative = true;  ///< of the operation; if false, contributions fold in rank order
  bool average = false;     ///< the reduction ends with a `divide` step (division by size)
  int blocks = 1;           ///< for algorithms that are pipelined by structure

  /// all_gather's output and all_to_all's buffers may be tensors cut along any dimension: each
  /// block then has this many rows (the product of the dimensions before it): row j of block i lies
  /// at (j * size + i) * (count / rows).
  std::int64_t input_rows = 1;
  std::int64_t output_rows = 1;

  /// Uneven blocks. Set for gather, scatter, all_gather, reduce_scatter (both the same, equal on
  /// all ranks; `count` is then this rank's own) and all_to_all (this rank's view). Null: even
  /// blocks.
  std::shared_ptr<const Blocks> input_blocks;
  std::shared_ptr<const Blocks> output_blocks;

  /// Which ranks share a host, equal on all ranks. Null: all do.
  std::shared_ptr<const Hosts> hosts;

  /// Whether input and output are one buffer on this rank. Then only one of the two is named in its
  /// schedule: the input for scatter and reduce_scatter, the output for the others.
  bool aliased() const;
  /// Whether blocks differ in size.
  bool uneven() const { return input_blocks || output_blocks; }
  /// Elements of this rank's whole input; 0 where it has none, or where input and output are one
  /// buffer that is named output.
  std::int64_t input_extent() const;
  /// Elements of this rank's whole output; 0 where it has none, or where input and output are one
  /// buffer that is named input.
  std::int64_t output_extent() const;
  /// Elements in block i of the buffer that has one block per rank.
  std::int64_t block_count(int i) const;
  /// Sum of block_count over all ranks.
  std::int64_t total_count() const;

  /// The rank `distance` ranks on, round the ring of all ranks.
  int rank_after(int distance) const { return modulo(rank + distance); }
  /// The rank `distance` ranks back, round the ring of all ranks.
  int rank_before(int distance) const { return modulo(rank - distance); }
  /// r modulo size, from 0 to size - 1 for negative r, too.
  int modulo(std::int64_t r) const { return static_cast<int>(((r % size) + size) % size); }
  /// The same problem for another rank. Not for uneven all_to_all, where each rank has its own
  /// view.
  Problem at(int other_rank) const;
};

/// Elements of chunk i when `count` elements are cut into `chunks` near-equal ones, the larger
/// first.
std::int64_t chunk_count(std::int64_t count, int chunks, int i);
/// Where chunk i begins.
std::int64_t chunk_offset(std::int64_t count, int chunks, int i);
/// Smallest k with 2^k >= n, exact.
int ceil_log2(std::int64_t n);

}  // namespace baton
#pragma GCC visibility pop
