#pragma once
/// Texts in UTF-8, cut between characters.

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace baton::base {

/// Whether a byte belongs to the character that a byte before it began.
constexpr bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

/// The longest beginning of at most so many bytes, in whole characters.
constexpr std::string_view beginning_of(std::string_view text, std::size_t bytes) {
  std::size_t end = std::min(text.size(), bytes);
  while (end > 0 && end < text.size() && continues_character(text[end])) --end;
  return text.substr(0, end);
}

/// The longest end of at most so many bytes, in whole characters.
constexpr std::string_view end_of(std::string_view text, std::size_t bytes) {
  std::size_t begin = text.size() - std::min(text.size(), bytes);
  while (begin < text.size() && continues_character(text[begin])) ++begin;
  return text.substr(begin);
}

}  // namespace baton::base
