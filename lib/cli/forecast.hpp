#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "baton/simulate.hpp"
#include "exercise.hpp"
#include "json.hpp"
#include "world.hpp"

namespace baton::cli {

/// The command line of `baton simulate`.
struct SimulateCommand {
  std::string collective = "all_reduce", algorithm, bytes = "1M", network = "shared-memory", hosts,
              segment, type = "f32", sweep, schedule;
  int ranks = 8, per_host = -1, root = 0, window = 2, measure = 0, factor = 2, calls = 1;
  bool json = false, progress = false;
};

/// Which pieces messages are cut into: so many bytes (0: not cut), or one of these.
constexpr std::int64_t library_segment = -1;  ///< what the library would choose
constexpr std::int64_t best_segment = -2;     ///< the one whose prediction is the least

/// What is asked of all simulations of a command.
struct Setting {
  Registry registry = Registry::builtin();
  Network network;
  SimulateCommand command;
  Datatype type = Datatype::f32;
  std::int64_t segment = library_segment;

  explicit Setting(const SimulateCommand& command);
  std::size_t type_bytes() const { return size_of(type); }
  std::shared_ptr<const Hosts> hosts(int ranks) const;
  /// The collective on so many bytes, as the command has it otherwise.
  Exercise exercise(Collective collective, int ranks, std::int64_t bytes) const;
  /// Those that serve the problem, of those that the command names; throws
  /// Error(invalid_argument) if it names one that does not.
  std::vector<const Algorithm*> algorithms(const Problem& problem) const;
};

/// What a simulation of one algorithm has said.
struct Forecast {
  const Algorithm* algorithm = nullptr;
  std::int64_t segment = 0;
  Prediction prediction;
  double seconds = 0;   ///< that it took, schedules included
  std::string refused;  ///< why there is none

  int calls = 1;  ///< that it is of, one right after the other

  double us() const { return static_cast<double>(prediction.total) * 1e-3 / calls; }  ///< per call
};

/// In the command's segments. Where it takes more memory than there is, `refused` says so.
Forecast forecast(const Setting& setting, const Exercise& exercise, const Algorithm& algorithm,
                  bool timeline = false);

/// Costs over ranks or bytes, and which algorithm is the best where. Returns the exit code.
int sweep(const Setting& setting);

/// Runs what is predicted, too, and prints both; every process calls it. Returns the
/// exit code.
int measured(const SimulateCommand& command, Launch& launch);

/// "12.3 us"
std::string human_time(double us);

}  // namespace baton::cli
