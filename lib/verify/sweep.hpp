#pragma once
/// Proves an algorithm on a grid of problems.

#include <cstdint>
#include <string>
#include <vector>

#include "baton/schedule/algorithm.hpp"

namespace baton::proving {

/// A finding and the problem that showed it.
struct SweepFinding {
  std::string problem;  ///< "all_reduce ring, 7 ranks, count 8, in place, segment 1, window 0"
  std::string flaw;     ///< the flaw's name; "error" where the algorithm threw
  int rank = -1;
  int step = -1;
  std::string sentence;
};

struct SweepResult {
  std::int64_t proofs = 0;    ///< sets of schedules that were checked
  std::int64_t steps = 0;     ///< steps in them
  std::int64_t messages = 0;  ///< messages in them
  std::vector<SweepFinding> findings;

  bool holds() const { return findings.empty(); }
  SweepResult& operator+=(SweepResult other);
};

/// What is proved of the schedules: verify(), or verify_fused() of what fused() makes of them,
/// with a window of 1 and with none.
enum class Form : std::uint8_t { plain, fused };

/// Verifies the algorithm for `size` ranks on each problem of the grid that it serves: several
/// roots; counts around 0 and the number of ranks; uneven blocks, empty ones and gaps among them;
/// tensors cut along a dimension; in place and not; operations that commute and not, and the
/// average; unsegmented and with messages cut in 2 and in 3. Up to 12 ranks all combinations,
/// beyond that each choice with several of the others. May be called by several threads at once,
/// with different results.
SweepResult sweep(const Algorithm& algorithm, int size, Form form = Form::plain);

/// The problems of that grid: each is a set, one for each rank.
std::vector<std::vector<Problem>> sweep_problems(const Algorithm& algorithm, int size);

}  // namespace baton::proving
