#include "text_line.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "baton/error.hpp"

namespace baton::scheduling {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// The text up to a comment; a # within quotation marks begins none.
std::string_view without_comment(std::string_view text) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && quoted) {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == '#' && !quoted) {
      return text.substr(0, i);
    }
  }
  return text;
}

/// At most 40 characters, printable ones as they are.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 40)) out += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > 40 ? out + "..." : out;
}

}  // namespace

TextLine::TextLine(std::string_view origin, std::size_t number, std::string_view text)
    : origin_(origin), rest_(without_comment(text)), number_(number) {
  skip_blanks();
}

bool TextLine::at_number() const { return !done() && digit(rest_.front()); }

bool TextLine::take_word(std::string_view word) {
  if (peek_word() != word) return false;
  advance(word.size());
  return true;
}

bool TextLine::take(char symbol) {
  if (done() || rest_.front() != symbol) return false;
  advance(1);
  return true;
}

void TextLine::expect(char symbol) {
  if (!take(symbol)) fail(fmt::format("\"{}\"", symbol));
}

std::int64_t TextLine::number(std::string_view what, std::int64_t least, std::int64_t most) {
  const auto after = std::find_if_not(rest_.begin(), rest_.end(), digit);
  const std::string_view digits(rest_.data(), static_cast<std::size_t>(after - rest_.begin()));
  std::int64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec != std::errc() || value < least || value > most) {
    const std::string expected = least == 0 && most == most_elements ? std::string(what)
                                 : most == most_elements
                                     ? fmt::format("{} of at least {}", what, least)
                                     : fmt::format("{} from {} to {}", what, least, most);
    if (digits.empty()) fail(expected);
    fail(expected, shown(digits));
  }
  advance(digits.size());
  return value;
}

std::string_view TextLine::word() {
  const std::string_view word = peek_word();
  advance(word.size());
  return word;
}

std::string TextLine::name(std::string_view what) {
  if (done() || rest_.front() != '"') {
    const auto after =
        std::find_if_not(rest_.begin(), rest_.end(), [](char c) { return letter(c) || digit(c); });
    if (after == rest_.begin()) fail(what);
    std::string name(rest_.begin(), after);
    advance(name.size());
    return name;
  }
  std::string name;
  for (std::size_t i = 1; i < rest_.size(); ++i) {
    char c = rest_[i];
    if (c == '"') {
      advance(i + 1);
      return name;
    }
    if (c == '\\' && i + 1 < rest_.size()) {
      c = rest_[++i];
      if (c == 'n') c = '\n';
    }
    name += c;
  }
  fail("a closing quotation mark", "none");
}

Regions TextLine::regions() {
  Regions regions;
  std::int64_t length = 0;
  do {
    regions.push_back(region());
    length += regions.back().length();
    if (length > most_elements) fail("an operand of fewer elements", fmt::format("{}", length));
  } while (take(','));
  return regions;
}

Region TextLine::region() {
  Region region;
  if (take_word("input")) {
    region.buffer = Buffer::input;
  } else if (take_word("output")) {
    region.buffer = Buffer::output;
  } else if (take_word("scratch")) {
    region.buffer = Buffer::scratch;
  } else if (take_word("slot")) {
    region.buffer = Buffer::slot;
  } else {
    fail("a region of input, output, scratch or slot");
  }
  expect('[');
  region.offset = number("an offset");
  expect(':');
  region.block = number("a length", 1);
  if (take('x')) {
    region.count = number("a number of blocks", 2);
    expect('/');
    region.stride = number("a stride", region.block);
    const std::int64_t most_blocks = (most_elements - region.offset) / region.stride;
    if (region.count > most_blocks) fail("fewer blocks", fmt::format("{}", region.count));
  }
  expect(']');
  return region;
}

void TextLine::end(std::string_view expected) const {
  if (!done()) fail(expected);
}

void TextLine::fail(std::string_view expected) const {
  const auto after = std::find_if(rest_.begin(), rest_.end(), blank);
  const std::string_view next(rest_.data(), static_cast<std::size_t>(after - rest_.begin()));
  fail(expected, next.empty() ? "the end of the line" : fmt::format("\"{}\"", shown(next)));
}

void TextLine::fail(std::string_view expected, std::string_view found) const {
  refuse(fmt::format("expected {}, found {}", expected, found));
}

void TextLine::refuse(std::string_view why) const {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}:{}: {}", origin_, number_, why));
}

void TextLine::skip_blanks() {
  while (!rest_.empty() && blank(rest_.front())) rest_.remove_prefix(1);
  while (!rest_.empty() && blank(rest_.back())) rest_.remove_suffix(1);
}

std::string_view TextLine::peek_word() const {
  const auto after =
      std::find_if_not(rest_.begin(), rest_.end(), [](char c) { return letter(c) || c == '-'; });
  return rest_.substr(0, static_cast<std::size_t>(after - rest_.begin()));
}

void TextLine::advance(std::size_t characters) {
  rest_.remove_prefix(characters);
  skip_blanks();
}

}  // namespace baton::scheduling
