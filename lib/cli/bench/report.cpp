#include "report.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

namespace baton::cli::bench {
namespace {

template <class Values, class F>
std::int64_t sum_of(const Values& values, const F& term) {
  std::int64_t sum = 0;
  for (const auto& value : values) sum += term(value);
  return sum;
}

Table table_of(LastColumn last) {
  return Table({{"collective", -14},
                {"size", 10, "(B)"},
                {"count", 10, "(elements)"},
                {"through", -7},
                {"algorithm", -18},
                {"segment", 7, "(B)"},
                {"ours", 9, "(us)"},
                {"+-", 3, "(%)"},
                {"built-in", -24},
                {"time", 9, "(us)"},
                {"+-", 3, "(%)"},
                {"ratio", 5},
                {"low", 5, "95 %"},
                {"high", 5, "95 %"},
                {"algbw", 6, "(GB/s)"},
                {"busbw", 6, "(GB/s)"},
                last == LastColumn::way ? Column{"way", -1} : Column{"limit", 5, "(%)"}},
               "# ", "  ");
}

/// Half the distance between the quartiles, in percent of the median.
std::string relative_spread(const Side& side) {
  return fmt::format("{:.0f}", 100 * spread(side.samples) / median(side.samples));
}

/// `theirs`: of the built-in; empty: there is none.
std::string way_text(const std::string& ours, const std::string& theirs) {
  return theirs.empty() || theirs == ours ? ours : fmt::format("{}; built-in: {}", ours, theirs);
}

/// The interface by which a side was called.
std::string through(const Side& side) { return side.function.empty() ? "api" : "drop-in"; }

/// `theirs` and `ratio` are null where there is no built-in.
std::string line_of(const BenchRow& row, const Side& ours, const Side* theirs,
                    const Interval* ratio) {
  const Case& subject = row.subject;
  const std::int64_t bytes = subject.bytes();
  const double seconds = median(ours.samples);
  const auto two_digits = [](double value) { return fmt::format("{:.2f}", value); };
  const double bandwidth = gigabytes_per_second(bytes, seconds);
  const bool known = !ours.algorithm.empty();
  const std::string limit =
      row.lower_bound > 0 ? fmt::format("{:.0f}", 100 * row.lower_bound / seconds) : "-";
  return table_of(ours.way.empty() ? LastColumn::limit : LastColumn::way)
      .line(name(subject.collective()), bytes, bytes == 0 ? 0 : subject.problem.count,
            through(ours), known ? ours.algorithm : "-", known ? segment_text(ours.segment) : "-",
            microseconds(seconds), relative_spread(ours), theirs ? theirs->name : "-",
            theirs ? microseconds(median(theirs->samples)) : "-",
            theirs ? relative_spread(*theirs) : "-", ratio ? two_digits(ratio->median) : "-",
            ratio ? two_digits(ratio->low) : "-", ratio ? two_digits(ratio->high) : "-",
            two_digits(bandwidth), two_digits(bandwidth * subject.bus_factor()),
            ours.way.empty() ? limit : way_text(ours.way, theirs ? theirs->way : ""));
}

Json json_of(const Side& side, double lower_bound) {
  const bool known = side.ours && !side.algorithm.empty();
  const Interval time = median_interval(side.samples);
  return Json::object({
      {"name", side.name},
      {"ours", side.ours},
      {"through", side.ours ? Json(through(side)) : Json()},
      {"algorithm", known ? Json(side.algorithm) : Json()},
      {"segment_bytes", known ? Json(side.segment) : Json()},
      {"time_us", time.median * 1e6},
      {"time_low_us", time.low * 1e6},
      {"time_high_us", time.high * 1e6},
      {"spread_us", spread(side.samples) * 1e6},
      {"limit_share", lower_bound > 0 ? Json(lower_bound / time.median) : Json()},
      {"checked", side.check.checks},
      {"wrong", side.check.wrong},
      {"way", side.way.empty() ? Json() : Json(side.way)},
      {"calls_per_sample", side.calls},
      {"samples_us", in_microseconds(side.samples)},
  });
}

Json json_of(const Ratio& ratio, const std::vector<Side>& sides) {
  return Json::object({{"ours", sides[ratio.ours].name},
                       {"against", sides[ratio.theirs].name},
                       {"ratio", ratio.interval.median},
                       {"low", ratio.interval.low},
                       {"high", ratio.interval.high},
                       {"coverage", ratio.interval.coverage}});
}

Json times_of(const Exchange& exchange) {
  return Json::object({{"bytes", exchange.bytes},
                       {"GBps_each_way", exchange.bandwidth() * 1e-9},
                       {"samples_us", in_microseconds(exchange.times())}});
}

Json json_of(const std::optional<Link>& link) {
  if (!link) return Json();
  return Json::object({{"latency_us", link->latency * 1e6},
                       {"latency_bytes", latency_bytes},
                       {"latency_samples_us", in_microseconds(link->latencies)},
                       {"exchanges", mapped(link->exchanges, times_of)}});
}

Json json_of_row(const BenchRow& row) {
  const Comparison& found = row.comparison;
  const auto side = [&](const Side& one) { return json_of(one, row.lower_bound); };
  const auto ratio = [&](const Ratio& one) { return json_of(one, found.sides); };
  const auto exchange = [](const Exchange& one) {
    Json json = Json::object({{"across_hosts", one.across}});
    json.update(times_of(one));
    return json;
  };
  const Collective collective = row.subject.collective();
  const std::int64_t bytes = row.subject.bytes();
  return Json::object({
      {"collective", name(collective)},
      {"asked_bytes", row.subject.asked},
      {"bytes", bytes},
      {"count", bytes == 0 ? 0 : row.subject.problem.count},
      {"type", name(row.subject.type)},
      {"op", reducing(collective) ? Json(name(row.subject.op)) : Json()},
      {"root", rooted(collective) ? Json(row.subject.problem.root) : Json()},
      {"bus_factor", row.subject.bus_factor()},
      {"calls_per_sample", found.calls},
      {"lower_bound_us", row.lower_bound > 0 ? Json(row.lower_bound * 1e6) : Json()},
      {"exchanges", mapped(found.exchanges, exchange)},
      {"sides", mapped(found.sides, side)},
      {"ratios", mapped(found.ratios, ratio)},
  });
}

}  // namespace

std::int64_t BenchRow::checks() const {
  return sum_of(comparison.sides, [](const Side& side) { return side.check.checks; });
}
std::int64_t BenchRow::wrong() const {
  return sum_of(comparison.sides, [](const Side& side) { return side.check.wrong; });
}

std::string bench_head(LastColumn last) { return table_of(last).head(); }

std::string bench_lines(const BenchRow& row) {
  std::string text;
  const std::vector<Side>& sides = row.comparison.sides;
  for (const Ratio& ratio : row.comparison.ratios) {
    text += line_of(row, sides[ratio.ours], &sides[ratio.theirs], &ratio.interval);
  }
  if (row.comparison.ratios.empty()) {
    for (const Side& side : sides) text += line_of(row, side, nullptr, nullptr);
  }
  return text;
}

Json json_of(const std::vector<BenchRow>& rows) { return mapped(rows, json_of_row); }

Json json_of(const Links& links) {
  return Json::object(
      {{"within_host", json_of(links.within)}, {"across_hosts", json_of(links.across)}});
}

JsonFile::JsonFile(const std::string& path)
    : file_(of_option("--json", [&] { return OutputFile(path); })) {}

void JsonFile::write(const Json& json) {
  of_option("--json", [&] {
    file_.write(text_of(json));
    file_.commit();
  });
}

Report::Report(bool speaks, int ranks, std::size_t cases, bool progress)
    : speaks_(speaks),
      ranks_(ranks),
      progress_(static_cast<std::int64_t>(cases), progress, speaks) {}

void Report::print(const std::string& text) {
  if (!speaks_) return;
  progress_.clear();
  fmt::print("{}", text);
  std::fflush(stdout);
}

void Report::show_progress(std::string_view what) {
  progress_.show(static_cast<std::int64_t>(rows_.size()), what);
}

void Report::add(BenchRow row) {
  rows_.push_back(std::move(row));
  print(bench_lines(rows_.back()));
}

void Report::close() {
  print(fmt::format("# {} checked on {}, {} wrong\n", counted(checks(), "result"),
                    counted(ranks_, "rank"), wrong()));
}

std::int64_t Report::checks() const {
  return sum_of(rows_, [](const BenchRow& row) { return row.checks(); });
}
std::int64_t Report::wrong() const {
  return sum_of(rows_, [](const BenchRow& row) { return row.wrong(); });
}

}  // namespace baton::cli::bench
