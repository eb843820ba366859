#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cli/common/statistics.hpp"
#include "cli/measure/sides.hpp"
#include "plain_links.hpp"

namespace baton::cli::bench {

using measure::Side;

struct ComparisonOptions {
  bool api = true,
       drop_in = false;  ///< our sides: baton::Communicator, MPI_… of a preloaded drop-in
  Choice choice;
  int pairs = 20, large_pairs = 6;
  std::int64_t large = 16 << 20;  ///< from here on, in bytes, large_pairs
  double seconds = 0.005;         ///< of a sample at least
  /// Every side makes as many calls in a sample as the fastest needs to fill it; otherwise as many
  /// as it needs itself.
  bool equal_calls = true;
};

/// Their time divided by our time, over rounds: above 1, ours is faster.
struct Ratio {
  std::size_t ours = 0, theirs = 0;  ///< sides
  Interval interval;
};

/// Sides that run the same case, and plain messages, timed in turn.
struct Comparison {
  int calls = 1;  ///< in a sample, of the side that makes the most
  std::vector<Side> sides;
  std::vector<Ratio> ratios;
  std::vector<Exchange> exchanges;
};

/// Times all sides and probes in turn, each sample of options.seconds at least. Collective.
/// `before()` is called before each round.
Comparison compare(std::vector<Side> sides, std::vector<Exchange> probes, const Case& subject,
                   const ComparisonOptions& options, const std::function<void()>& before);

/// Checks this library's results on a case, then compares its ways and the built-ins. Collective.
Comparison compare_case(World& world, Communicator& communicator, const Case& subject,
                        std::vector<Exchange> probes, const ComparisonOptions& options,
                        const std::function<void()>& before);

/// The API is compared with every built-in, a drop-in with the one whose name it takes.
std::vector<Ratio> ratios_of(const std::vector<Side>& sides);

}  // namespace baton::cli::bench
