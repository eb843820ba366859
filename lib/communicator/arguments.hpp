#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "../execute/plan_cache.hpp"
#include "../status/page.hpp"
#include "baton/calls.hpp"
#include "baton/schedule/problem.hpp"

namespace baton::communicator {

/// The bytes of an element; those of Datatype::user are the operation's. `op`: null if the call has
/// none. Throws Error(invalid_argument) if it states none.
std::size_t element_bytes_of(std::string_view call, Datatype type, const Op* op);
/// The bytes of a message's element. Throws Error(invalid_argument) for Datatype::user.
std::size_t message_element_bytes(std::string_view call, Datatype type);

/// A checked call, in the terms of schedules. The communicator keeps one and refills it for each
/// call, so a repeated call allocates nothing.
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
  std::byte token{};                                    ///< sent by a barrier; never written

  /// Fills this from a call. Throws Error(invalid_argument).
  void bind(const Call& call, int rank, int size);
  Problem problem(int rank, int size) const;
  /// Throws Error(invalid_argument) if the host cannot reach the data. Costs a microsecond, so only
  /// new plans are checked.
  void check_reach() const;
  /// The call on the rank's page, without the algorithm.
  status::Call shown() const;
  /// Appends everything that the problem depends on.
  void append_to(execute::PlanKey& key) const;
};

}  // namespace baton::communicator
