#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/common/collective_options.hpp"
#include "workload.hpp"

namespace baton::cli::run {

/// The command line of `baton run`.
struct RunOptions {
  CollectiveOptions data = {.bytes = "8:64M"};
  std::string trace;
  std::vector<std::string> workloads;
  int iterations = 0;  ///< 0: as many as fit into a tenth of a second, 2 to 1000
  int warmup = 1, prove = 0;
  std::uint64_t delays = 0;
  bool check = false, each = false, json = false, progress = false;
};

/// Declares them on the command.
void add_options(const OptionSet& set, RunOptions& options);

/// The number of ranks to run with; `launched` is the launcher's, or 0. Throws
/// Error(invalid_argument) where options contradict it.
int ranks_for(const RunOptions& options, int launched);

/// Options of the library: the command line's, otherwise the environment's. Throws
/// Error(invalid_argument).
Options library_of(const RunOptions& options);

/// The cases to run, in order. Throws Error(invalid_argument).
std::vector<Job> jobs_for(const RunOptions& options, int ranks);

}  // namespace baton::cli::run
