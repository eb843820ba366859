#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checker.hpp"
#include "exercise.hpp"
#include "network.hpp"
#include "statistics.hpp"
#include "world.hpp"

namespace baton::cli {

/// How a user reaches this library's collectives.
enum class Through : std::uint8_t {
  api,      ///< baton::Communicator
  drop_in,  ///< MPI_… of a preloaded drop-in
  both,
};

struct ContestOptions {
  Through through = Through::api;
  Choice choice;
  int pairs = 20, large_pairs = 6;
  std::int64_t large = 16 << 20;  ///< from here on, in bytes, large_pairs
  double seconds = 0.005;         ///< of a sample at least
  /// Every side makes as many calls in a sample as the fastest needs to fill it; otherwise as many
  /// as it needs itself.
  bool equal_calls = true;
};

/// One of those who do the same.
struct Contestant {
  std::string name;      ///< "baton", "drop-in MPI_Bcast", "MPI_Bcast"
  std::string function;  ///< of MPI; empty: the API
  bool ours = false;
  std::string algorithm;        ///< empty: unknown
  std::int64_t segment = 0;     ///< bytes; 0: not cut
  std::vector<double> seconds;  ///< per call, of the slowest rank: a sample per round
  Verdict verdict;              ///< of ours
  std::string way = {};         ///< by what messages go, on a device; empty: as the transport's
  int calls = 1;                ///< per sample
};

/// The ratio of times, theirs divided by ours, over rounds: above 1, ours is faster.
struct Comparison {
  std::size_t ours = 0, theirs = 0;  // sides
  Interval ratio;
};

/// Plain messages, timed in turn with the contestants.
struct Exchange {
  bool across = false;  ///< from host to host
  Pace pace;
};

struct Contest {
  int repeats = 1;  ///< calls per sample, of the side that makes the most
  std::vector<Contestant> sides;
  std::vector<Comparison> comparisons;
  std::vector<Exchange> exchanges;
};

/// One who takes part in a contest, and how.
struct Side {
  Contestant contestant;
  /// Seconds of the slowest rank for so many calls back to back, all beginning together.
  std::function<double(int)> seconds;
};

/// Times all sides, and the probes, in turn, `rounds` times, each sample of options.seconds at
/// least. Collective. `before()` is called before each round.
Contest in_turn(World& world, std::vector<Side> sides, const std::vector<Rings::Probe>& probes,
                const Exercise& exercise, const ContestOptions& options,
                const std::function<void()>& before);

/// Checks this library's result on an exercise, then times all sides, and the probes, in
/// turn.
Contest contest(World& world, Communicator& communicator, const Exercise& exercise,
                const std::vector<Rings::Probe>& probes, const ContestOptions& options,
                const std::function<void()>& before);

/// The API is compared with every built-in, a drop-in with the one whose name it takes.
std::vector<Comparison> comparisons_of(const std::vector<Contestant>& sides);

}  // namespace baton::cli
