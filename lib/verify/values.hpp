#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expressions.hpp"
#include "promise.hpp"

namespace baton::proving {

/// Runs all ranks on expressions instead of numbers, and compares what they end with to what the
/// collective promises.
class Values {
 public:
  /// `sequence` is an order of all steps in which they can take place.
  void check(const Program& program, const Promise& promise,
             std::span<const std::uint32_t> sequence, Findings& findings);

 private:
  void place_inputs(const Promise& promise);
  void run(const Program& program, std::span<const std::uint32_t> sequence, Findings& findings);
  void check_results(const Program& program, const Promise& promise, int rank, Findings& findings);

  Expressions expressions_;
  std::vector<std::uint32_t> bases_;
  std::vector<Value> values_;    // per element
  std::vector<Value> expected_;  // per element of one rank's input and output
  std::vector<Value> agreed_;    // all_reduce: what the ranks so far hold, per element; 0: none yet
};

/// What each rank knows of the others' arrival: checks barriers.
class Knowledge {
 public:
  void check(const Program& program, std::span<const std::uint32_t> sequence, Findings& findings);

 private:
  std::vector<std::uint64_t> known_;  // per step, a bit for each rank that had started
};

}  // namespace baton::proving
