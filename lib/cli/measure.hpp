#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checker.hpp"
#include "exercise.hpp"
#include "world.hpp"

namespace baton::cli {

/// How exercises are run.
struct MeasureOptions {
  std::string algorithm;      ///< empty: the library chooses; "all": each that serves the problem
  std::optional<std::int64_t> segment;  ///< bytes; empty: chosen
  int iterations = 0;         ///< 0: as many as fit into a tenth of a second, 2 to 1000
  int warmup = 1;
  bool in_place = false;  ///< of flat data; tensors stay apart
};

/// One algorithm on one exercise, as all ranks know it.
struct Measured {
  std::string algorithm;
  std::int64_t segment = 0;  ///< bytes; 0: not cut
  double seconds = 0;        ///< of the slowest rank, per run
  int iterations = 0;
  Verdict verdict;
};

struct MeasuredAll {
  double built_in_seconds = -1;  ///< of the slowest rank, per run; -1: there is none
  std::vector<Measured> algorithms;
};

/// The algorithms of `registry` that an exercise is to be run with: names, or "" for the library's
/// choice. Empty where the one that is wanted does not exist for the collective, or `all` refuse.
std::vector<std::string> algorithms_for(const Exercise& exercise, const Registry& registry,
                                        const std::string& wanted);

/// Checks and times the exercise with each algorithm. Collective. Each is run on exact values (or
/// any bits, where data only moves), every result compared with the reference: the built-in's, or
/// one computed from all inputs; then, where reductions round, on random ones. Results that all
/// ranks share must be the same bits on all of them, and the same again after the timed runs.
/// `before(algorithm)` is called before each algorithm.
MeasuredAll measure(World& world, Communicator& communicator, const Exercise& exercise,
                    const std::vector<std::string>& algorithms, const MeasureOptions& options,
                    const std::function<void(const std::string&)>& before);

}  // namespace baton::cli
