#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "baton/schedule/region.hpp"
#include "slots.hpp"

namespace baton::scheduling {

/// One line of a schedule's text, read from left to right. A comment (#) ends it.
class TextLine {
 public:
  static constexpr std::int64_t most_elements = scheduling::most_elements;

  TextLine(std::string_view origin, std::size_t number, std::string_view text);

  bool done() const { return rest_.empty(); }
  /// Whether the next character is a digit.
  bool at_number() const;
  /// Consumes the next word if it is this one.
  bool take_word(std::string_view word);
  /// Consumes the next character if it is this one.
  bool take(char symbol);
  /// Consumes this character or fails.
  void expect(char symbol);
  /// Consumes a number; `what` says in an error what was expected.
  std::int64_t number(std::string_view what, std::int64_t least = 0,
                      std::int64_t most = most_elements);
  /// Consumes a word; empty if there is none.
  std::string_view word();
  /// Consumes a word, or any text in quotation marks.
  std::string name(std::string_view what);
  /// Consumes regions joined by commas.
  Regions regions();
  /// Fails unless all was consumed.
  void end(std::string_view expected = "the end of the line") const;

  /// Throws Error(invalid_argument): "origin:line: expected …, found …", found being what comes
  /// next.
  [[noreturn]] void fail(std::string_view expected) const;
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const;
  /// Throws Error(invalid_argument): "origin:line: …".
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  Region region();
  void skip_blanks();
  std::string_view peek_word() const;
  void advance(std::size_t characters);

  std::string_view origin_, rest_;
  std::size_t number_;
};

}  // namespace baton::scheduling
