#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "baton/simulate.hpp"
#include "cli/common/case.hpp"
#include "cli/common/collective_options.hpp"
#include "cli/common/world.hpp"

namespace baton::cli::simulate {

/// The command line of `baton simulate`.
struct SimulateCommand {
  CollectiveOptions data = {.collective = "all_reduce", .bytes = "1M"};
  std::string network = "shared-memory", sweep;
  int per_host = -1, window = 2, measure = 0, factor = 2, calls = 1;
  bool json = false, progress = false;

  /// The number of ranks: as given, else that of --hosts, else 8.
  int ranks() const { return data.ranks == 0 && data.hosts.empty() ? 8 : data.rank_count(); }
};

/// The state that all simulations of a command share.
struct Setting {
  Registry registry;
  Network network;
  SimulateCommand command;
  Datatype type = Datatype::f32;
  std::optional<std::int64_t> segment;  ///< bytes; 0: not cut; empty: the library chooses
  bool best_segment = false;            ///< instead: the one whose prediction is the least

  explicit Setting(const SimulateCommand& command);
  std::size_t type_bytes() const { return size_of(type); }
  std::shared_ptr<const Hosts> hosts(int ranks) const;
  /// The collective on so many bytes, as the command has it otherwise.
  Case subject(Collective collective, int ranks, std::int64_t bytes) const;
  /// Those that serve the problem, of those that the command names; throws
  /// Error(invalid_argument) if it names one that does not.
  std::vector<const Algorithm*> algorithms(const Problem& problem) const;
};

/// The result of a simulation of one algorithm.
struct Forecast {
  const Algorithm* algorithm = nullptr;
  std::int64_t segment = 0;
  /// Of one call, of those that were simulated one right after the other; events and seconds: of
  /// all.
  Prediction prediction;
  double seconds = 0;   ///< that it took, schedules included
  std::string refused;  ///< why there is none

  double us() const { return static_cast<double>(prediction.total) * 1e-3; }
};

/// In the command's segments. Where it takes more memory than there is, `refused` says so.
Forecast forecast(const Setting& setting, const Case& subject, const Algorithm& algorithm,
                  bool timeline = false);

/// Costs over ranks or bytes, and which algorithm is the best where. Returns the exit code.
int sweep(const Setting& setting);

/// Runs what is predicted, too, and prints both; every process calls it. Returns the
/// exit code.
int measured(const SimulateCommand& command, Launch& launch);

}  // namespace baton::cli::simulate
