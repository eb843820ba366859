#include "report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "baton/version.hpp"
#include "cli/common/text.hpp"
#include "cli/verify/proofs.hpp"

namespace baton::cli::run {

namespace {

Json json(const Row& row) {
  const Case& subject = row.subject;
  const bool has_built_in = row.built_in_seconds >= 0;
  return Json::object({
      {"workload", row.name.empty() ? Json() : Json(row.name)},
      {"collective", name(subject.collective())},
      {"algorithm", row.algorithm},
      {"segment_bytes", row.segment < 0 ? Json() : Json(row.segment)},
      {"bytes", row.bytes},
      {"count", row.count},
      {"type", name(subject.type)},
      {"op", reducing(subject.collective()) ? Json(name(subject.op)) : Json()},
      {"root", rooted(subject.collective()) ? Json(subject.problem.root) : Json()},
      {"iterations", row.iterations},
      {"time_us", row.seconds * 1e6},
      {"algbw_GBps", gigabytes_per_second(row.bytes, row.seconds)},
      {"busbw_GBps", gigabytes_per_second(row.bytes, row.bus_seconds)},
      {"checked", row.checks},
      {"wrong", row.wrong},
      {"built_in_us", has_built_in ? Json(row.built_in_seconds * 1e6) : Json()},
      {"ratio",
       has_built_in && row.seconds > 0 ? Json(row.built_in_seconds / row.seconds) : Json()},
  });
}

}  // namespace

Row row_of(const std::string& name, const Case& subject, const measure::Side& side,
           double built_in_seconds) {
  const auto times = static_cast<double>(subject.times);
  const std::int64_t bytes = subject.bytes() * subject.times;
  const double seconds = side.samples.at(0) * times, factor = subject.bus_factor();
  return {.name = name,
          .subject = subject,
          .algorithm = side.algorithm,
          .segment = side.segment,
          .bytes = bytes,
          .count = bytes == 0 ? 0 : subject.problem.count * subject.times,
          .iterations = side.calls,
          .seconds = seconds,
          .bus_seconds = factor > 0 ? seconds / factor : 0,
          .checks = side.check.checks,
          .wrong = side.check.wrong,
          .built_in_seconds = built_in_seconds < 0 ? -1 : built_in_seconds * times};
}

void add_to(Row& row, const Row& other) {
  if (row.algorithm != other.algorithm) row.algorithm = "several";
  if (row.segment != other.segment) row.segment = -1;
  row.bytes += other.bytes;
  row.count += other.count;
  row.iterations = std::min(row.iterations, other.iterations);
  row.seconds += other.seconds;
  row.bus_seconds += other.bus_seconds;
  row.checks += other.checks;
  row.wrong += other.wrong;
  row.built_in_seconds = row.built_in_seconds < 0 || other.built_in_seconds < 0
                             ? -1
                             : row.built_in_seconds + other.built_in_seconds;
}

void print_end(const Outcome& outcome, int prove, int ranks) {
  std::string proved;
  if (prove > 0) {
    proved =
        fmt::format("{} proved for P = 1..{} by {}, {}; ", counted(outcome.proved, "algorithm"),
                    prove, counted(outcome.proofs, "proof"), counted(outcome.failures, "failure"));
  }
  fmt::print("# {}{} checked on {}, {} wrong\n", proved, counted(outcome.checks, "result"),
             counted(ranks, "rank"), outcome.wrong);
}

void print_json(const Outcome& outcome, int prove, int ranks, const std::string& transport) {
  const Json proved = Json::object(
      {{"algorithms", outcome.proved},
       {"max_ranks", prove},
       {"proofs", outcome.proofs},
       {"failures", outcome.failures},
       {"first_failure", outcome.first_failure.empty() ? Json() : Json(outcome.first_failure)}});
  print(Json::object({{"baton", version()},
                      {"transport", transport},
                      {"ranks", ranks},
                      {"findings", verify::json_of(outcome.findings)},
                      {"rows", mapped(outcome.rows, json)},
                      {"proved", prove > 0 ? proved : Json()},
                      {"checked", outcome.checks},
                      {"wrong", outcome.wrong}}));
}

Table table_for(const RunOptions& options, const std::vector<Job>& jobs, bool built_in) {
  int names = 0;
  bool roots = false;
  for (const Job& job : jobs) {
    for (const Case& subject : job.cases) {
      const std::size_t own = options.each ? subject.name.size() + 1 : 0;
      if (!job.name.empty()) names = std::max(names, static_cast<int>(job.name.size() + own));
      roots = roots || subject.problem.root != 0;
    }
  }
  return Table({{"workload", -names},
                {"collective", -14},
                {"algorithm", -22},
                {"segment", 8, "(B)"},
                {"size", 12, "(B)"},
                {"count", 11, "(elements)"},
                {"type", 5},
                {"redop", 6},
                {"root", roots ? 5 : 0},
                {"time", 10, "(us)"},
                {"algbw", 7, "(GB/s)"},
                {"busbw", 7, "(GB/s)"},
                {"#wrong", 7},
                {"built-in", built_in ? 10 : 0, "(us)"},
                {"ratio", built_in ? 6 : 0}},
               "# ", "  ");
}

std::string line_of(const Table& table, const Row& row) {
  const Case& subject = row.subject;
  const auto bandwidth = [&](double seconds) {
    return fmt::format("{:.2f}", gigabytes_per_second(row.bytes, seconds));
  };
  const bool built_in = row.built_in_seconds >= 0;
  const double ratio = row.seconds > 0 ? row.built_in_seconds / row.seconds : 0;
  return table.line(row.name, name(subject.collective()), row.algorithm, segment_text(row.segment),
                    row.bytes, row.count, name(subject.type),
                    reducing(subject.collective()) ? name(subject.op) : "none",
                    rooted(subject.collective()) ? subject.problem.root : -1,
                    microseconds(row.seconds), bandwidth(row.seconds), bandwidth(row.bus_seconds),
                    row.checks == 0 ? "N/A" : fmt::format("{}", row.wrong),
                    built_in ? microseconds(row.built_in_seconds) : "-",
                    built_in ? fmt::format("{:.2f}", ratio) : "-");
}

}  // namespace baton::cli::run
