#pragma once

#include <functional>
#include <string>
#include <vector>

#include "case_runner.hpp"
#include "cli/common/world.hpp"

namespace baton::cli::measure {

/// Seconds that the slowest rank takes for `calls` calls back to back, which all ranks begin after
/// a barrier. Collective.
double timed(World& world, const std::function<void()>& call, int calls);

/// Seconds of the slowest rank for so many calls back to back. Collective.
using TimedCalls = std::function<double(int calls)>;

/// Calls that fill `seconds`, at least 1; the same on all ranks. Collective.
int calls_filling(const TimedCalls& timed_calls, double seconds);

/// Something whose calls are timed, and the times that were found.
struct Timed {
  TimedCalls seconds;
  int calls = 1;                     ///< in a sample
  std::vector<double> samples = {};  ///< seconds per call

  void sample() { samples.push_back(seconds(calls) / calls); }
};

/// One sample of `calls` calls, after `warmup` of them; 0 calls: as many as fit into a tenth of a
/// second, from 2 to 1000. Collective.
void sample_alone(Timed& one, int warmup, int calls);

/// `rounds` samples of each. Round 0 goes from the first to the last, round 1 back, and so on (A B
/// B A A B …): drift and the influence of the one before favour none. Collective. `before()` is
/// called before each round.
void sample_in_turn(
    std::vector<Timed*> all, int rounds, const std::function<void()>& before = [] {});

/// One that runs a case: this library in one of its ways, or another library.
struct Side : Timed {
  std::string name;      ///< "baton", "drop-in MPI_Bcast", "MPI_Bcast"
  std::string function;  ///< of MPI; empty: this library's API
  bool ours = false;
  std::string algorithm;      ///< empty: unknown
  std::int64_t segment = 0;   ///< bytes; 0: not cut
  std::string way;            ///< of its messages, on a device; empty: the transport's
  std::function<void()> run;  ///< once, from the case's buffers to its result
  CheckResult check;
};

/// This library by its API. Collective; world and runner must outlive it.
Side own_side(World& world, CaseRunner& runner, const Choice& choice);
/// The collectives that come with the transport: the one that one would call first. Empty if there
/// are none. Collective; world and buffers must outlive them.
std::vector<Side> built_in_sides(World& world, const Case& subject, CaseBuffers& buffers,
                                 Entry entry);

}  // namespace baton::cli::measure
