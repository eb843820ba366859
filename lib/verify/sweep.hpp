#pragma once
/// Proves an algorithm on a grid of problems.

#include <cstdint>
#include <string>
#include <vector>

#include "baton/schedule/algorithm.hpp"

namespace baton::proving {

/// A finding and its problem.
struct SweepFinding {
  std::string problem;  ///< for example "all_reduce ring, 7 ranks, count 8, in place, segment 1,
                        ///< window 0"
  std::string flaw;     ///< the flaw's name; "error" if the algorithm threw
  int rank = -1;
  int step = -1;
  std::string sentence;
};

struct SweepResult {
  std::int64_t proofs = 0;    ///< sets of schedules checked
  std::int64_t steps = 0;     ///< steps in them
  std::int64_t messages = 0;  ///< messages in them
  std::vector<SweepFinding> findings;

  bool holds() const { return findings.empty(); }
  SweepResult& operator+=(SweepResult other);
};

/// The proof: verify(); or verify_fused() of the results of fused(), with a window of 1 and with
/// none.
enum class Form : std::uint8_t { plain, fused };

/// Verifies the algorithm on `size` ranks, on each problem of the grid that it serves. The axes
/// are: several roots; counts around 0 and around the number of ranks; uneven and empty blocks, and
/// gaps; tensors cut along a dimension; in place and not; commutative and other ops, and the
/// average; messages whole, in 2 and in 3 segments. Up to 12 ranks the grid has all combinations,
/// beyond that each value with several of the others. Several threads may call it at once, with
/// different results.
SweepResult sweep(const Algorithm& algorithm, int size, Form form = Form::plain);

/// The problems of that grid: each is a set with one problem per rank.
std::vector<std::vector<Problem>> sweep_problems(const Algorithm& algorithm, int size);

}  // namespace baton::proving
