#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "baton/output_file.hpp"
#include "cli/common/text.hpp"
#include "comparison.hpp"

namespace baton::cli::bench {

/// Measurements of one case.
struct BenchRow {
  Case subject;
  Comparison comparison;
  double lower_bound = 0;  ///< seconds per call; 0: there is none

  std::int64_t checks() const;
  std::int64_t wrong() const;
};

/// Content of the table's last column: the share of the limit, or the way of messages.
enum class LastColumn : std::uint8_t { limit, way };

/// A line for each ratio, or one for each side where there are none, under a head. Where sides have
/// a way, that is the last column.
std::string bench_head(LastColumn last);
std::string bench_lines(const BenchRow& row);

/// Everything that was measured, all samples included.
Json json_of(const std::vector<BenchRow>& rows);
Json json_of(const Links& links);

/// The file of option --json, begun before anything is measured and replaced when it is written.
/// Throws Error(invalid_argument) if it cannot be written.
class JsonFile {
 public:
  explicit JsonFile(const std::string& path);
  void write(const Json& json);

 private:
  OutputFile file_;
};

/// The results of a benchmark so far. One rank prints them as they come, with a line of progress.
class Report {
 public:
  /// `ranks`: whose results are counted; `progress`: show it even if stderr is not a terminal.
  Report(bool speaks, int ranks, std::size_t cases, bool progress);

  void print(const std::string& text);
  void show_progress(std::string_view what);
  void add(BenchRow row);
  /// Prints the last line: what was checked.
  void close();

  const std::vector<BenchRow>& rows() const { return rows_; }
  std::int64_t checks() const;
  std::int64_t wrong() const;

 private:
  bool speaks_;
  int ranks_;
  Progress progress_;
  std::vector<BenchRow> rows_;
};

}  // namespace baton::cli::bench
