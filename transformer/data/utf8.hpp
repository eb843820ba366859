#pragma once
/// Texts in UTF-8.

#include <cstddef>
#include <string_view>

namespace baton::transformer::data {

/// Where the character begins that the byte `at` belongs to; `at` if that is the text's end.
constexpr std::size_t character_begin(std::string_view text, std::size_t at) {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}

}  // namespace baton::transformer::data
