#pragma once
/// Walk-throughs: what each rank holds after every step.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "baton/schedule.hpp"
#include "baton/types.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// How a walk-through is printed.
struct WalkThrough {
  /// values[r] is rank r's input (for broadcast: its data before); empty: 10 * (r + 1) + element.
  std::vector<std::vector<double>> values;
  OpKind op = OpKind::sum;
  bool every_step = false;  ///< a row for each receive, fold and copy, not only for each round
  /// Elements of a buffer that a cell shows, at least 2: of more, the first and the last, and how
  /// many lie between.
  std::size_t most = 64;
};

/// What every rank holds at one point of a walk-through.
struct Holdings {
  std::string label;  ///< "before", "after round 3", or a step
  /// Of each rank, its values as words: "·" is undefined; scratch stands behind "|"; "(6 more)"
  /// stands for values that are not shown.
  std::vector<std::vector<std::string>> ranks;
};
/// Before the first step and after every round, or every step: what each rank holds. Runs the
/// schedules step by step on small values, in an order that respects their dependencies. Throws
/// Error(invalid_argument) if the schedules are too large for people to read.
std::vector<Holdings> holdings(std::span<const Schedule> schedules, const WalkThrough& how = {});

/// holdings() as a table with a column per rank and a row per round, or step.
std::string walk_through(std::span<const Schedule> schedules, const WalkThrough& how = {});

/// One rank's schedule in words, round by round: "round 1: send output[0:4] to 2, …".
std::string in_words(const Schedule& schedule);

}  // namespace baton
#pragma GCC visibility pop
