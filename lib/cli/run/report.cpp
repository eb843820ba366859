#include "report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/common/json.hpp"
#include "cli/common/text.hpp"

namespace baton::cli::run {

namespace {

Json json(const Row& row) {
  const bool has_built_in = row.built_in_seconds >= 0;
  return Json::object({
      {"workload", row.name.empty() ? Json() : Json(row.name)},
      {"collective", name(row.collective)},
      {"algorithm", row.algorithm},
      {"segment_bytes", row.segment < 0 ? Json() : Json(row.segment)},
      {"bytes", row.bytes},
      {"count", row.count},
      {"type", name(row.type)},
      {"op", reducing(row.collective) ? Json(name(row.op)) : Json()},
      {"root", rooted(row.collective) ? Json(row.root) : Json()},
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
  Row row;
  const auto times = static_cast<double>(subject.times);
  row.name = name;
  row.collective = subject.collective();
  row.algorithm = side.algorithm;
  row.segment = side.segment;
  row.bytes = subject.bytes() * subject.times;
  row.count = row.bytes == 0 ? 0 : subject.problem.count * subject.times;
  row.type = subject.type;
  row.op = subject.op;
  row.root = subject.problem.root;
  row.iterations = side.calls;
  row.seconds = side.samples.at(0) * times;
  row.bus_seconds = subject.bus_factor() > 0 ? row.seconds / subject.bus_factor() : 0;
  row.checks = side.check.checks;
  row.wrong = side.check.wrong;
  row.built_in_seconds = built_in_seconds < 0 ? -1 : built_in_seconds * times;
  return row;
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
    proved = fmt::format("{} proved for P = 1..{} by {}, {}; ",
                         counted(static_cast<std::int64_t>(outcome.proved), "algorithm"), prove,
                         counted(outcome.proofs, "proof"), counted(outcome.failures, "failure"));
  }
  fmt::print("# {}{} checked on {}, {} wrong\n", proved, counted(outcome.checks, "result"),
             counted(ranks, "rank"), outcome.wrong);
}

void print_json(const Outcome& outcome, int prove, int ranks, const std::string& transport) {
  std::vector<Json> rows;
  for (const Row& row : outcome.rows) rows.push_back(json(row));
  const Json proved = Json::object({{"algorithms", outcome.proved},
                                    {"max_ranks", prove},
                                    {"proofs", outcome.proofs},
                                    {"failures", outcome.failures}});
  print(Json::object({{"baton", BATON_VERSION},
                      {"transport", transport},
                      {"ranks", ranks},
                      {"rows", rows},
                      {"proved", prove > 0 ? proved : Json()},
                      {"checked", outcome.checks},
                      {"wrong", outcome.wrong}}));
}

std::string Table::head() const {
  std::string first, second;
  const auto add = [&](std::string_view a, std::string_view b, std::size_t width, bool left) {
    first += left ? fmt::format("{:<{}} ", a, width) : fmt::format("{:>{}} ", a, width);
    second += left ? fmt::format("{:<{}} ", b, width) : fmt::format("{:>{}} ", b, width);
  };
  if (columns_.name > 0) add("workload", "", columns_.name, true);
  add("collective", "", 14, true);
  add("algorithm", "", 22, true);
  add("segment", "(B)", 8, false);
  add("size", "(B)", 12, false);
  add("count", "(elements)", 11, false);
  add("type", "", 5, false);
  add("redop", "", 6, false);
  if (columns_.root) add("root", "", 5, false);
  add("time", "(us)", 10, false);
  add("algbw", "(GB/s)", 7, false);
  add("busbw", "(GB/s)", 7, false);
  add("#wrong", "", 7, false);
  if (columns_.built_in) {
    add("built-in", "(us)", 10, false);
    add("ratio", "", 6, false);
  }
  first.pop_back();
  second.resize(second.find_last_not_of(' ') + 1);
  return fmt::format("# {}\n# {}\n", first, second);
}

std::string Table::line(const Row& row) const {
  std::string text = "  ";
  if (columns_.name > 0) text += fmt::format("{:<{}} ", row.name, columns_.name);
  text += fmt::format("{:<14} {:<22} {:>8} {:>12} {:>11} {:>5} {:>6} ", name(row.collective),
                      row.algorithm, segment_text(row.segment), row.bytes, row.count,
                      name(row.type), reducing(row.collective) ? name(row.op) : "none");
  if (columns_.root) {
    text += fmt::format("{:>5} ", rooted(row.collective) ? fmt::format("{}", row.root) : "-1");
  }
  text += fmt::format("{:>10} {:>7.2f} {:>7.2f} {:>7}", microseconds(row.seconds),
                      gigabytes_per_second(row.bytes, row.seconds),
                      gigabytes_per_second(row.bytes, row.bus_seconds),
                      row.checks == 0 ? "N/A" : fmt::format("{}", row.wrong));
  if (columns_.built_in && row.built_in_seconds >= 0) {
    text += fmt::format(" {:>10} {:>6.2f}", microseconds(row.built_in_seconds),
                        row.seconds > 0 ? row.built_in_seconds / row.seconds : 0);
  } else if (columns_.built_in) {
    text += fmt::format(" {:>10} {:>6}", "-", "-");
  }
  return text + "\n";
}

}  // namespace baton::cli::run
