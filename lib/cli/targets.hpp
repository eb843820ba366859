#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contest.hpp"

namespace baton::cli {

/// What is required of a benchmark, and on which ranks; read from a file:
///
///     where 2 ranks, shared memory, Open MPI    what the numbers are for
///     ranks 2                                   numbers of ranks and of hosts that they hold for
///     hosts 1
///     8:4K   broadcast       ratio 0.8          sizes from … to, as `baton bench` counts them
///     8:64M  reduce_scatter  ratio MPI_Reduce_scatter 1.0
///     16M    all_reduce      share 92%
///     8:16K,1M:16M  all      geometric_mean 1.3
///
/// `ratio` is against the built-in that one would call, or the one named; it must hold at every
/// size. `share` is of the lower bound. `all` is every collective. # begins a comment.
struct Target {
  enum class Measure : std::uint8_t { ratio, share, geometric_mean };
  std::string sizes;                                          ///< as it was written
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  ///< the same: bytes from … to
  std::optional<Collective> collective;                       ///< nullopt: all
  Measure measure = Measure::ratio;
  std::string against;  ///< a function of MPI; empty: the first built-in
  double least = 0;
};

struct Targets {
  std::string where;
  std::vector<int> ranks, hosts;
  std::vector<Target> rows;
};

/// Throws Error(invalid_argument) that names `file` and the line.
Targets parse_targets(const std::string& text, const std::string& file);
/// One sentence unless the targets are for so many ranks and hosts.
std::string mismatch(const Targets& targets, int ranks, int hosts);

/// What was measured, as far as targets speak of it: one comparison at one size.
struct Result {
  Collective collective = Collective::all_reduce;
  std::int64_t bytes = 0;  ///< that were asked for, before rounding to equal blocks
  std::string ours;        ///< "api", "drop-in"
  std::string against;     ///< a function of MPI
  bool first = true;       ///< of the built-ins that `ours` is compared with
  Interval ratio;
  Interval share;  ///< lower bound / our time; zeros: none
};

struct Judgement {
  std::string ours;        ///< through what it was measured
  int sizes = 0;           ///< results that it rests on; 0: it was not measured
  std::int64_t worst = 0;  ///< bytes where the lower bound is least; ratios and shares
  Interval found;          ///< there; a geometric mean: of medians, and of the bounds
  bool reached = false;
};

/// A target is reached where the lower bound of the 95 % interval is at most this much below it.
constexpr double allowance = 0.03;

/// One for each way to our collectives that was measured, or one that says that none was. The
/// bounds of a geometric mean are the means of the bounds: wider than need be.
std::vector<Judgement> judge(const Target& target, const std::vector<Result>& results);

}  // namespace baton::cli
