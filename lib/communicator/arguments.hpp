#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "../execute/plan_cache.hpp"
#include "baton/calls.hpp"
#include "baton/schedule/problem.hpp"

namespace baton::communicator {

/// A call that has been checked, in the terms of schedules. Kept by the communicator and filled
/// anew for each call, so that a repeated call allocates nothing.
struct Arguments {
  Collective collective = Collective::barrier;
  Op op;
  Datatype type = Datatype::u8;
  std::size_t element_bytes = 1;
  int root = 0;
  std::int64_t count = 0;  ///< as in Problem
  bool in_place = false;
  std::int64_t input_rows = 1, output_rows = 1;
  std::span<const std::int64_t> input_counts, input_offsets, output_counts, output_offsets;
  bool counts_at_root = false;                          ///< as in Call
  std::vector<std::byte*> bases;                        ///< of the tensors: inputs, then outputs
  std::vector<std::int64_t> input_sizes, output_sizes;  ///< elements
  std::byte token{};                                    ///< what a barrier sends; never written

  /// Fills this from a call; throws Error(invalid_argument) that names what was expected and found.
  void bind(const Call& call, int rank, int size);
  /// The problem for this rank.
  Problem problem(int rank, int size) const;
  /// Throws Error(invalid_argument) where the host cannot reach the data. Costs a microsecond, so
  /// it is for calls that are planned anew.
  void check_reach() const;
  /// Appends all that the problem depends on.
  void append_to(execute::PlanKey& key) const;
};

}  // namespace baton::communicator
