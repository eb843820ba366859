#pragma once

#include <fmt/core.h>

#include <concepts>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "baton/error.hpp"

namespace baton::cli {

/// Throws Error(invalid_argument).
[[noreturn]] void refuse(const std::string& sentence);

/// "1 failure", "2 failures"
template <std::integral Number>
std::string counted(Number n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}
/// "3.0 MiB"
std::string human_bytes(std::int64_t bytes);
/// "12.3 us"; of microseconds.
std::string human_time(double us);
/// "1.234", "12.34", "1234"; of seconds.
std::string microseconds(double seconds);
double gigabytes_per_second(std::int64_t bytes, double seconds);
/// "128K"; "-": 0; "several": negative.
std::string segment_text(std::int64_t bytes);

/// f(value) of each value.
template <class Values, class F>
auto mapped(const Values& values, const F& f) {
  std::vector<std::decay_t<decltype(f(*values.begin()))>> all;
  for (const auto& value : values) all.push_back(f(value));
  return all;
}

/// The text of a file. Throws Error(invalid_argument).
std::string file_text(const std::string& file);
/// f(), whose error names the option.
template <class F>
auto of_option(const std::string& option, const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw Error(error.code, fmt::format("{}: {}", option, error.what()));
  }
}
/// Writes a file, whole or not at all; throws Error(invalid_argument) that names `option`.
void write_file(const std::string& option, const std::string& file, std::string_view text);
/// Writes the file of option --output, or, where it is empty, prints the text.
void write_output(const std::string& file, std::string_view text);

/// A JSON value whose members keep their order. Sources that build one include <nlohmann/json.hpp>,
/// which takes seconds to compile.
using Json = nlohmann::ordered_json;

/// The text of a file: the value, indented, and a newline.
std::string text_of(const Json& json);
/// Writes that to standard output.
void print(const Json& json);

/// A column of a table of text.
struct Column {
  std::string title;
  int width;  ///< characters at least; negative: text begins at the left; 0: the column is left out
  std::string unit = {};
};

/// Declares columns once, for the head and for the lines.
class Table {
 public:
  explicit Table(std::vector<Column> columns, std::string_view head_mark = {},
                 std::string_view line_mark = {})
      : columns_(std::move(columns)), head_mark_(head_mark), line_mark_(line_mark) {}

  /// A line of titles, and one of units if there are any.
  std::string head() const;
  /// A cell for each column.
  template <class... Cells>
  std::string line(const Cells&... cells) const {
    return joined(line_mark_, {fmt::format("{}", cells)...});
  }

 private:
  std::string joined(std::string mark, const std::vector<std::string>& cells) const;

  std::vector<Column> columns_;
  std::string head_mark_, line_mark_;
};

/// One line on standard error that says how far a long run is; it vanishes at the end. Silent
/// where standard error is no terminal, unless forced, and on ranks that do not speak. Not for
/// several threads at once.
class Progress {
 public:
  Progress(std::int64_t total, bool forced, bool speaks = true);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// "[3/17] what"
  void show(std::int64_t done, std::string_view what);
  /// The same of 0, 1, ...: what begins now.
  void next(std::string_view what) { show(next_++, what); }
  void clear();  ///< before anything else is printed

 private:
  std::int64_t total_, next_ = 0;
  bool on_, shown_ = false;
};

}  // namespace baton::cli
