#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "baton/verify.hpp"
#include "cli/common/text.hpp"
#include "cli/measure/sides.hpp"
#include "options.hpp"

namespace baton::cli::run {

/// One line of the table: an algorithm on one case, or on all of a job.
struct Row {
  std::string name;  ///< of the job; may be empty
  Case subject;      ///< of several, the first
  std::string algorithm;
  std::int64_t segment = 0;  ///< bytes; 0: not cut; -1: several
  std::int64_t bytes = 0, count = 0;
  int iterations = 0;
  double seconds = 0, bus_seconds = 0;  ///< bus_seconds * busbw = bytes
  std::int64_t checks = 0, wrong = 0;
  double built_in_seconds = -1;  ///< -1: there is none
};

/// The row of one algorithm on one case.
Row row_of(const std::string& name, const Case& subject, const measure::Side& side,
           double built_in_seconds);
/// Adds another case of the same job to a row.
void add_to(Row& row, const Row& other);

/// Findings of a whole run, equal on all ranks.
struct Outcome {
  std::vector<Row> rows;
  std::size_t proved = 0;  ///< algorithms
  std::int64_t proofs = 0, failures = 0;
  std::string first_failure;      ///< one sentence; "" without failures
  std::vector<Finding> findings;  ///< flaws of the user's schedules, which then did not run
  std::int64_t checks = 0, wrong = 0;

  bool good() const { return wrong == 0 && failures == 0 && findings.empty(); }
};

/// The last line: what was proved for 1 to `prove` ranks (0: nothing), and what was checked.
void print_end(const Outcome& outcome, int prove, int ranks);
void print_json(const Outcome& outcome, int prove, int ranks, const std::string& transport);

/// The table that users of nccl-tests know, with the algorithm and, where there is one, the
/// built-in beside; its names and roots are those of the jobs.
Table table_for(const RunOptions& options, const std::vector<Job>& jobs, bool built_in);
std::string line_of(const Table& table, const Row& row);

}  // namespace baton::cli::run
