#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/case.hpp"

namespace baton::cli::run {

/// Cases that are reported together: one row for each algorithm.
struct Job {
  std::string name;  ///< of the workload or group; may be empty
  std::vector<Case> cases;
};

/// Options that replace a workload's own settings.
struct WorkloadOverrides {
  std::vector<Collective> collectives;  ///< run on each line's size; empty: each line's own
  std::optional<Datatype> type;
  std::optional<OpKind> op;
  std::optional<int> root;
};

/// Reads a workload for a number of ranks. The format is described in workloads/README.md. Jobs
/// have one collective each. Throws Error(invalid_argument) naming `origin`, the line, what was
/// expected and what was found.
std::vector<Job> parse_workload(std::string_view text, const std::string& origin, int ranks,
                                const WorkloadOverrides& overrides);

/// The text of a workload: a file, or, where there is none, one that comes with the program, by its
/// name. Throws Error(invalid_argument) that lists those that come with the program.
std::string workload_text(const std::string& file);

}  // namespace baton::cli::run
