#include "text.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "baton/error.hpp"
#include "baton/output_file.hpp"

namespace baton::cli {

void refuse(const std::string& sentence) { throw Error(ErrorCode::invalid_argument, sentence); }

std::string human_bytes(std::int64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string human_time(double us) {
  if (us < 999.5) return fmt::format("{:.3g} us", us);
  if (us < 1e6) return fmt::format("{:.4g} ms", us * 1e-3);
  return fmt::format("{:.4g} s", us * 1e-6);
}

std::string microseconds(double seconds) {
  const double us = seconds * 1e6;
  return fmt::format("{:.{}f}", us, us < 10 ? 3 : us < 1000 ? 2 : 0);
}

double gigabytes_per_second(std::int64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds * 1e-9 : 0;
}

std::string segment_text(std::int64_t bytes) {
  if (bytes < 0) return "several";
  if (bytes == 0) return "-";
  if (bytes % (1 << 20) == 0) return fmt::format("{}M", bytes >> 20);
  return bytes % 1024 == 0 ? fmt::format("{}K", bytes >> 10) : fmt::format("{}", bytes);
}

std::string file_text(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (!std::filesystem::is_regular_file(file) || !(text << stream.rdbuf())) {
    refuse(fmt::format("expected a file that can be read, found \"{}\"", file));
  }
  return text.str();
}

void write_file(const std::string& option, const std::string& file, std::string_view text) {
  of_option(option, [&] { baton::write_file(file, text); });
}

void write_output(const std::string& file, std::string_view text) {
  if (!file.empty()) return write_file("--output", file, text);
  fmt::print("{}", text);
}

std::string text_of(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void print(const Json& json) { fmt::print("{}", text_of(json)); }

std::string Table::head() const {
  std::vector<std::string> titles, units;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    units.push_back(column.unit);
  }
  const bool any = std::ranges::any_of(units, [](const std::string& u) { return !u.empty(); });
  return joined(head_mark_, titles) + (any ? joined(head_mark_, units) : "");
}

std::string Table::joined(std::string line, const std::vector<std::string>& cells) const {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const int width = columns_[i].width;
    if (width == 0) continue;
    line += width < 0 ? fmt::format("{:<{}} ", cells[i], -width)
                      : fmt::format("{:>{}} ", cells[i], width);
  }
  line.resize(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

Progress::Progress(std::int64_t total, bool forced, bool speaks)
    : total_(total), on_(speaks && (forced || isatty(STDERR_FILENO) != 0)) {}

void Progress::show(std::int64_t done, std::string_view what) {
  if (!on_) return;
  fmt::print(stderr, "\r\033[K[{}/{}] {}", done, total_, what);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace baton::cli
