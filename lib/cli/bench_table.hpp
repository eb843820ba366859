#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench_report.hpp"
#include "progress.hpp"

namespace baton::cli {

/// What a benchmark has found so far, printed as it comes, with a line of progress, on the rank
/// that speaks.
class BenchTable {
 public:
  /// `ranks`: whose results are counted; `progress`: show it even where stderr is no terminal.
  BenchTable(bool speaks, int ranks, std::size_t exercises, bool progress);

  void print(const std::string& text);
  /// What is going on.
  void show(std::string_view what);
  void add(BenchRow row);
  /// The last line: what was checked.
  void close();

  const std::vector<BenchRow>& rows() const { return rows_; }
  std::vector<Json> json() const;  ///< of the rows
  std::int64_t checks() const;
  std::int64_t wrong() const;

 private:
  bool speaks_;
  int ranks_;
  std::optional<Progress> progress_;
  std::vector<BenchRow> rows_;
};

}  // namespace baton::cli
