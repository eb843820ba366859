#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "baton/error.hpp"

namespace baton::base {

/// Reads a text line by line. Blanks separate words; # begins a comment. Errors are
/// Error(invalid_argument): "origin:line: expected …, found …".
class LineReader {
 public:
  LineReader(std::string_view text, std::string origin) : text_(text), origin_(std::move(origin)) {}

  /// Goes to the next line that has a word. False, on the line after the last: there is none.
  bool next_line() {
    do {
      ++number_;
      if (text_.empty()) return false;
      const std::string_view line = text_.substr(0, text_.find('\n'));
      text_.remove_prefix(std::min(line.size() + 1, text_.size()));
      rest_ = trimmed(line.substr(0, line.find('#')));
    } while (rest_.empty());
    return true;
  }
  /// Consumes a word of the line; empty: there is none.
  std::string_view next_word() {
    const std::string_view word = rest_.substr(0, rest_.find_first_of(blanks));
    rest_ = trimmed(rest_.substr(word.size()));
    return word;
  }
  /// Consumes the rest of the line.
  std::string_view rest() { return std::exchange(rest_, {}); }
  int line() const { return number_; }  ///< from 1 on
  /// Fails unless all of the line was consumed.
  void end_line() const {
    if (!rest_.empty()) fail("the end of the line", rest_);
  }

  /// Quotes `found`; refuse() does not.
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    refuse(expected, fmt::format("\"{}\"", found));
  }
  [[noreturn]] void refuse(std::string_view expected, std::string_view found) const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}:{}: expected {}, found {}", origin_, number_, expected, found));
  }
  /// make(), whose error is one of this line.
  template <class F>
  auto here(const F& make) const {
    try {
      return make();
    } catch (const Error& error) {
      throw Error(error.code, fmt::format("{}:{}: {}", origin_, number_, error.what()));
    }
  }

 private:
  static constexpr std::string_view blanks = " \t\r";
  static std::string_view trimmed(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    return text.substr(0, text.find_last_not_of(blanks) + 1);
  }

  std::string_view text_, rest_;
  std::string origin_;
  int number_ = 0;
};

}  // namespace baton::base
