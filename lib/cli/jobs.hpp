#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "measure.hpp"
#include "workload.hpp"

namespace baton::cli {

/// The command line of `baton run`.
struct RunOptions {
  std::string collective;  ///< empty: all_reduce, or each line's own of a workload
  std::string bytes = "8:64M", type, op, segment, schedule, hosts, trace;
  std::vector<std::string> workloads;
  MeasureOptions measure;
  int ranks = 0, root = 0, prove = 0;
  std::uint64_t delays = 0;
  bool check = false, each = false, json = false, progress = false;
};

/// Adds them to the subcommand.
void add_run_options(CLI::App& sub, RunOptions& options);

/// "8:64M" as 8, 16, … 64M, each `factor` times the last; "4K" as itself. Throws
/// Error(invalid_argument).
std::vector<std::int64_t> sizes_named(const std::string& text, int factor = 2);
/// One by its name, or "all". Throws Error(invalid_argument).
std::vector<Collective> collectives_named(const std::string& text);
/// Flat exercises of these sizes in bytes; of sizes too small to differ, the first.
std::vector<Exercise> sized_exercises(Collective collective, int ranks,
                                      const std::vector<std::int64_t>& sizes, Datatype type,
                                      OpKind op, int root);
/// Of option --segment, in bytes; empty if the text is. Throws Error(invalid_argument).
std::optional<std::int64_t> segment_of(const std::string& text);
/// The library's options: those of the environment, and of the command line. Without a word of the
/// user, a hang ends after a minute, with a sentence.
Options library_options(bool check);

/// Option --trace, and the end of what it asks for: collective.
void add_trace_option(CLI::App& sub, std::string& file);
void stop_recording(Communicator& communicator);

/// The number of ranks to run with; `launched` is the launcher's, or 0. Throws
/// Error(invalid_argument) where the two differ.
int ranks_for(const RunOptions& options, int launched);

/// How threads are to behave. Throws Error(invalid_argument).
ThreadOptions thread_options(const RunOptions& options);

/// What is to be run, in order. Throws Error(invalid_argument).
std::vector<Job> jobs_for(const RunOptions& options, int ranks);

}  // namespace baton::cli
