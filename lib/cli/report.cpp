#include "report.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace baton::cli {

double gigabytes_per_second(std::int64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds * 1e-9 : 0;
}

std::string segment_text(std::int64_t bytes) {
  if (bytes < 0) return "several";
  if (bytes == 0) return "-";
  if (bytes % (1 << 20) == 0) return fmt::format("{}M", bytes >> 20);
  return bytes % 1024 == 0 ? fmt::format("{}K", bytes >> 10) : fmt::format("{}", bytes);
}

std::string microseconds(double seconds) {
  const double us = seconds * 1e6;
  return fmt::format("{:.{}f}", us, us < 10 ? 3 : us < 1000 ? 2 : 0);
}

Row row_of(const std::string& name, const Exercise& exercise, const Measured& measured,
           double built_in_seconds) {
  Row row;
  const auto times = static_cast<double>(exercise.times);
  row.name = name;
  row.collective = exercise.collective();
  row.algorithm = measured.algorithm;
  row.segment = measured.segment;
  row.bytes = exercise.bytes() * exercise.times;
  row.count = row.bytes == 0 ? 0 : exercise.problem.count * exercise.times;
  row.type = exercise.type;
  row.op = exercise.op;
  row.root = exercise.problem.root;
  row.iterations = measured.iterations;
  row.seconds = measured.seconds * times;
  row.bus_seconds = exercise.bus_factor() > 0 ? row.seconds / exercise.bus_factor() : 0;
  row.checks = measured.verdict.checks;
  row.wrong = measured.verdict.wrong;
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

Json Row::json() const {
  const bool reduces = reducing(collective), has_built_in = built_in_seconds >= 0;
  return Json::object({
      {"workload", name.empty() ? Json::null() : Json(name)},
      {"collective", baton::name(collective)},
      {"algorithm", algorithm},
      {"segment_bytes", segment < 0 ? Json::null() : Json(segment)},
      {"bytes", bytes},
      {"count", count},
      {"type", baton::name(type)},
      {"op", reduces ? Json(baton::name(op)) : Json::null()},
      {"root", rooted(collective) ? Json(root) : Json::null()},
      {"iterations", iterations},
      {"time_us", seconds * 1e6},
      {"algbw_GBps", gigabytes_per_second(bytes, seconds)},
      {"busbw_GBps", gigabytes_per_second(bytes, bus_seconds)},
      {"checked", checks},
      {"wrong", wrong},
      {"built_in_us", has_built_in ? Json(built_in_seconds * 1e6) : Json::null()},
      {"ratio", has_built_in && seconds > 0 ? Json(built_in_seconds / seconds) : Json::null()},
  });
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

}  // namespace baton::cli
