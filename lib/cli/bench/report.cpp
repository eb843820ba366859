#include "report.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <iterator>
#include <utility>

#include "cli/common/text.hpp"

namespace baton::cli::bench {
namespace {

struct Column {
  const char* title;
  const char* unit;
  std::size_t width;
  bool left;
};

constexpr Column columns[] = {
    {"collective", "", 14, true},  {"size", "(B)", 10, false},  {"count", "(elements)", 10, false},
    {"through", "", 7, true},      {"algorithm", "", 18, true}, {"segment", "(B)", 7, false},
    {"ours", "(us)", 9, false},    {"+-", "(%)", 3, false},     {"built-in", "", 24, true},
    {"time", "(us)", 9, false},    {"+-", "(%)", 3, false},     {"ratio", "", 5, false},
    {"low", "95 %", 5, false},     {"high", "95 %", 5, false},  {"algbw", "(GB/s)", 6, false},
    {"busbw", "(GB/s)", 6, false}, {"limit", "(%)", 5, false},
};
/// The last one, on devices.
constexpr Column way_column = {"way", "", 0, true};

const Column& column(std::size_t i, LastColumn last) {
  return last == LastColumn::way && i + 1 == std::size(columns) ? way_column : columns[i];
}

std::string line(std::string text, const std::vector<std::string>& cells, LastColumn last) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto [title, unit, width, left] = column(i, last);
    text +=
        left ? fmt::format("{:<{}} ", cells[i], width) : fmt::format("{:>{}} ", cells[i], width);
  }
  text.resize(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

/// Half the distance between the quartiles, in percent of the median.
std::string relative_spread(const Side& side) {
  return fmt::format("{:.0f}", 100 * spread(side.samples) / median(side.samples));
}

/// `theirs`: of the built-in; empty: there is none.
std::string way_text(const std::string& ours, const std::string& theirs) {
  return theirs.empty() || theirs == ours ? ours : fmt::format("{}; built-in: {}", ours, theirs);
}

std::string line_of(const BenchRow& row, const Side& ours, const std::vector<std::string>& built_in,
                    const std::string& other_way) {
  const Case& subject = row.subject;
  const std::int64_t bytes = subject.bytes();
  const double seconds = median(ours.samples);
  const double bandwidth = gigabytes_per_second(bytes, seconds);
  const bool known = !ours.algorithm.empty();
  std::vector<std::string> cells = {std::string(name(subject.collective())),
                                    fmt::format("{}", bytes),
                                    fmt::format("{}", bytes == 0 ? 0 : subject.problem.count),
                                    through(ours),
                                    known ? ours.algorithm : "-",
                                    known ? segment_text(ours.segment) : "-",
                                    microseconds(seconds),
                                    relative_spread(ours)};
  cells.insert(cells.end(), built_in.begin(), built_in.end());
  cells.push_back(fmt::format("{:.2f}", bandwidth));
  cells.push_back(fmt::format("{:.2f}", bandwidth * subject.bus_factor()));
  if (!ours.way.empty()) {
    cells.push_back(way_text(ours.way, other_way));
    return line("  ", cells, LastColumn::way);
  }
  cells.push_back(row.lower_bound > 0 ? fmt::format("{:.0f}", 100 * row.lower_bound / seconds)
                                      : "-");
  return line("  ", cells, LastColumn::limit);
}

}  // namespace

std::int64_t BenchRow::checks() const {
  std::int64_t sum = 0;
  for (const Side& side : comparison.sides) sum += side.check.checks;
  return sum;
}

std::int64_t BenchRow::wrong() const {
  std::int64_t sum = 0;
  for (const Side& side : comparison.sides) sum += side.check.wrong;
  return sum;
}

std::string through(const Side& side) { return side.function.empty() ? "api" : "drop-in"; }

std::string bench_head(LastColumn last) {
  std::vector<std::string> titles, units;
  for (std::size_t i = 0; i < std::size(columns); ++i) {
    titles.emplace_back(column(i, last).title);
    units.emplace_back(column(i, last).unit);
  }
  return line("# ", titles, last) + line("# ", units, last);
}

std::string bench_lines(const BenchRow& row) {
  std::string text;
  const std::vector<Side>& sides = row.comparison.sides;
  for (const Ratio& ratio : row.comparison.ratios) {
    const Side& theirs = sides[ratio.theirs];
    text += line_of(
        row, sides[ratio.ours],
        {theirs.name, microseconds(median(theirs.samples)), relative_spread(theirs),
         fmt::format("{:.2f}", ratio.interval.median), fmt::format("{:.2f}", ratio.interval.low),
         fmt::format("{:.2f}", ratio.interval.high)},
        theirs.way);
  }
  if (row.comparison.ratios.empty()) {
    for (const Side& side : sides) text += line_of(row, side, {"-", "-", "-", "-", "-", "-"}, {});
  }
  return text;
}

Report::Report(bool speaks, int ranks, std::size_t cases, bool progress)
    : speaks_(speaks), ranks_(ranks) {
  if (speaks) progress_.emplace(static_cast<std::int64_t>(cases), progress);
}

void Report::print(const std::string& text) {
  if (!speaks_) return;
  if (progress_) progress_->clear();
  fmt::print("{}", text);
  std::fflush(stdout);
}

void Report::show_progress(std::string_view what) {
  if (progress_) progress_->show(static_cast<std::int64_t>(rows_.size()), what);
}

void Report::add(BenchRow row) {
  rows_.push_back(std::move(row));
  print(bench_lines(rows_.back()));
}

void Report::close() {
  progress_.reset();
  print(fmt::format("# {} checked on {}, {} wrong\n", counted(checks(), "result"),
                    counted(ranks_, "rank"), wrong()));
}

std::int64_t Report::checks() const {
  std::int64_t sum = 0;
  for (const BenchRow& row : rows_) sum += row.checks();
  return sum;
}

std::int64_t Report::wrong() const {
  std::int64_t sum = 0;
  for (const BenchRow& row : rows_) sum += row.wrong();
  return sum;
}

}  // namespace baton::cli::bench
