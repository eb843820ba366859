#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expressions.hpp"
#include "promise.hpp"

namespace baton::proving {

/// Runs all ranks on expressions instead of numbers, and compares the results with the collective's
/// promise.
class Values {
 public:
  /// `sequence` is a possible order of all steps. A sequence without receives has each with its
  /// send.
  void check(const Program& program, const Promise& promise,
             std::span<const std::uint32_t> sequence, Findings& findings);

 private:
  void place_inputs(const Promise& promise);
  void run(const Program& program, std::span<const std::uint32_t> sequence, Findings& findings);
  void check_results(const Program& program, const Promise& promise, int rank, Findings& findings);

  Expressions expressions_;
  std::vector<std::uint32_t> bases_;
  std::vector<Value> values_;                  // per element
  std::vector<std::vector<Value>> under_way_;  // of each send whose receive comes later
  std::vector<Value> expected_;                // per element of one rank's input and output
  // All_reduce: the result of the ranks so far, per element; 0: none yet.
  std::vector<Value> agreed_;
};

/// For each rank, the other ranks known to have arrived: checks barriers.
class Knowledge {
 public:
  void check(const Program& program, std::span<const std::uint32_t> sequence, Findings& findings);

 private:
  std::vector<std::uint64_t> known_;  // per step, a bit for each rank that had started
};

}  // namespace baton::proving
