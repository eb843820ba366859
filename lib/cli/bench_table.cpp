#include "bench_table.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <utility>

#include "text.hpp"

namespace baton::cli {

BenchTable::BenchTable(bool speaks, int ranks, std::size_t exercises, bool progress)
    : speaks_(speaks), ranks_(ranks) {
  if (speaks) progress_.emplace(static_cast<std::int64_t>(exercises), progress);
}

void BenchTable::print(const std::string& text) {
  if (!speaks_) return;
  if (progress_) progress_->clear();
  fmt::print("{}", text);
  std::fflush(stdout);
}

void BenchTable::show(std::string_view what) {
  if (progress_) progress_->show(static_cast<std::int64_t>(rows_.size()), what);
}

void BenchTable::add(BenchRow row) {
  rows_.push_back(std::move(row));
  print(bench_lines(rows_.back()));
}

void BenchTable::close() {
  progress_.reset();
  print(fmt::format("# {} checked on {}, {} wrong\n", counted(checks(), "result"),
                    counted(ranks_, "rank"), wrong()));
}

std::vector<Json> BenchTable::json() const {
  std::vector<Json> all;
  for (const BenchRow& row : rows_) all.push_back(row.json());
  return all;
}

std::int64_t BenchTable::checks() const {
  std::int64_t sum = 0;
  for (const BenchRow& row : rows_) sum += row.checks();
  return sum;
}

std::int64_t BenchTable::wrong() const {
  std::int64_t sum = 0;
  for (const BenchRow& row : rows_) sum += row.wrong();
  return sum;
}

}  // namespace baton::cli
