#pragma once

#include <string>
#include <vector>

#include "cli/common/collective_options.hpp"
#include "comparison.hpp"

namespace baton::cli::bench {

/// The program that runs `baton bench --device`.
constexpr const char* device_program = "baton-bench-device";

/// The command line of `baton bench`, on the host's memory and on devices.
struct BenchOptions {
  CollectiveOptions data = {.bytes = "8:64M"};
  std::vector<std::string> collectives;
  std::string through = "api";
  std::string device;       ///< empty: the host
  std::string json, trace;  ///< files
  ComparisonOptions comparison;
  int factor = 2, sample_ms = 5;
  bool progress = false;
};

/// Adds the command, which calls `run`.
void add_bench(CommandLine& program, const std::function<int(BenchOptions, Launch&)>& run);

/// Throws Error(invalid_argument) where the options of --device are wrong.
void check_device(const BenchOptions& options, const Launch& launch);

/// Becomes the program baton-bench-device, with the same arguments, if these are `bench --device`
/// and that program lies beside this one; otherwise returns.
void become_bench_device(int argc, char** argv);

std::vector<Case> cases_for(const BenchOptions& options, int ranks);

}  // namespace baton::cli::bench
