#include "bench_report.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "report.hpp"
#include "sample.hpp"
#include "text.hpp"

namespace baton::cli {
namespace {

std::string through(const Contestant& side) { return side.function.empty() ? "api" : "drop-in"; }

/// Half the distance between the quartiles, in percent of the median.
std::string relative_spread(const Contestant& side) {
  return fmt::format("{:.0f}", 100 * spread(side.seconds) / median(side.seconds));
}

Json side_json(const Contestant& side, double lower_bound) {
  const bool known = side.ours && !side.algorithm.empty();
  const Interval time = median_interval(side.seconds);
  return Json::object({
      {"name", side.name},
      {"ours", side.ours},
      {"through", side.ours ? Json(through(side)) : Json::null()},
      {"algorithm", known ? Json(side.algorithm) : Json::null()},
      {"segment_bytes", known ? Json(side.segment) : Json::null()},
      {"time_us", time.median * 1e6},
      {"time_low_us", time.low * 1e6},
      {"time_high_us", time.high * 1e6},
      {"spread_us", spread(side.seconds) * 1e6},
      {"limit_share", lower_bound > 0 ? Json(lower_bound / time.median) : Json::null()},
      {"checked", side.verdict.checks},
      {"wrong", side.verdict.wrong},
      {"way", side.way.empty() ? Json::null() : Json(side.way)},
      {"calls_per_sample", side.calls},
      {"samples_us", samples_json(side.seconds)},
  });
}

Json interval_json(const Contest& contest, const Comparison& comparison) {
  return Json::object({{"ours", contest.sides[comparison.ours].name},
                       {"against", contest.sides[comparison.theirs].name},
                       {"ratio", comparison.ratio.median},
                       {"low", comparison.ratio.low},
                       {"high", comparison.ratio.high},
                       {"coverage", comparison.ratio.coverage}});
}

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

std::string limit_text(const BenchRow& row, const Contestant& side) {
  return row.lower_bound > 0 ? fmt::format("{:.0f}", 100 * row.share(side).median) : "-";
}

/// `theirs`: of the built-in; empty: there is none.
std::string way_text(const std::string& ours, const std::string& theirs) {
  return theirs.empty() || theirs == ours ? ours : fmt::format("{}; built-in: {}", ours, theirs);
}

}  // namespace

std::int64_t BenchRow::checks() const {
  std::int64_t sum = 0;
  for (const Contestant& side : contest.sides) sum += side.verdict.checks;
  return sum;
}

std::int64_t BenchRow::wrong() const {
  std::int64_t sum = 0;
  for (const Contestant& side : contest.sides) sum += side.verdict.wrong;
  return sum;
}

Interval BenchRow::share(const Contestant& side) const {
  if (lower_bound <= 0) return {};
  const Interval time = median_interval(side.seconds);
  return {lower_bound / time.median, lower_bound / time.high, lower_bound / time.low,
          time.coverage};
}

Json BenchRow::json() const {
  std::vector<Json> sides, ratios, exchanges;
  for (const Contestant& side : contest.sides) sides.push_back(side_json(side, lower_bound));
  for (const Comparison& c : contest.comparisons) ratios.push_back(interval_json(contest, c));
  for (const Exchange& e : contest.exchanges) {
    exchanges.push_back(Json::object({{"across_hosts", e.across},
                                      {"bytes", e.pace.bytes},
                                      {"GBps_each_way", e.pace.bandwidth() * 1e-9},
                                      {"samples_us", samples_json(e.pace.samples)}}));
  }
  const Collective collective = exercise.collective();
  const std::int64_t bytes = exercise.bytes();
  return Json::object({
      {"collective", name(collective)},
      {"asked_bytes", exercise.asked},
      {"bytes", bytes},
      {"count", bytes == 0 ? 0 : exercise.problem.count},
      {"type", name(exercise.type)},
      {"op", reducing(collective) ? Json(name(exercise.op)) : Json::null()},
      {"root", rooted(collective) ? Json(exercise.problem.root) : Json::null()},
      {"bus_factor", exercise.bus_factor()},
      {"calls_per_sample", contest.repeats},
      {"lower_bound_us", lower_bound > 0 ? Json(lower_bound * 1e6) : Json::null()},
      {"exchanges", Json::array(exchanges)},
      {"sides", Json::array(sides)},
      {"ratios", Json::array(ratios)},
  });
}

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
  const Exercise& e = row.exercise;
  const std::int64_t bytes = e.bytes();
  const auto add = [&](const Contestant& ours, const std::vector<std::string>& rival,
                       const std::string& other_way) {
    const double seconds = median(ours.seconds);
    const double bandwidth = gigabytes_per_second(bytes, seconds);
    const bool known = !ours.algorithm.empty();
    std::vector<std::string> cells = {std::string(name(e.collective())),
                                      fmt::format("{}", bytes),
                                      fmt::format("{}", bytes == 0 ? 0 : e.problem.count),
                                      through(ours),
                                      known ? ours.algorithm : "-",
                                      known ? segment_text(ours.segment) : "-",
                                      microseconds(seconds),
                                      relative_spread(ours)};
    cells.insert(cells.end(), rival.begin(), rival.end());
    cells.push_back(fmt::format("{:.2f}", bandwidth));
    cells.push_back(fmt::format("{:.2f}", bandwidth * e.bus_factor()));
    const bool limited = ours.way.empty();
    cells.push_back(limited ? limit_text(row, ours) : way_text(ours.way, other_way));
    text += line("  ", cells, limited ? LastColumn::limit : LastColumn::way);
  };
  for (const Comparison& comparison : row.contest.comparisons) {
    const Contestant& theirs = row.contest.sides[comparison.theirs];
    add(row.contest.sides[comparison.ours],
        {theirs.name, microseconds(median(theirs.seconds)), relative_spread(theirs),
         fmt::format("{:.2f}", comparison.ratio.median),
         fmt::format("{:.2f}", comparison.ratio.low), fmt::format("{:.2f}", comparison.ratio.high)},
        theirs.way);
  }
  if (row.contest.comparisons.empty()) {
    for (const Contestant& side : row.contest.sides) add(side, {"-", "-", "-", "-", "-", "-"}, {});
  }
  return text;
}

std::string text_of(const Path& path) {
  const Pace& largest = path.paces.back();
  return fmt::format("latency {} us, {:.2f} GB/s each way at {}", microseconds(path.latency),
                     largest.bandwidth() * 1e-9, human_bytes(largest.bytes));
}

}  // namespace baton::cli
