#include "base/utf8.hpp"

#include <doctest/doctest.h>

#include <string>

using baton::base::beginning_of;
using baton::base::continues_character;
using baton::base::end_of;

TEST_CASE("utf8: texts are cut between characters") {
  const std::string text = "aä€x";  // 1, 2, 3 and 1 bytes
  const std::string_view beginnings[] = {"", "a", "a", "aä", "aä", "aä", "aä€", "aä€x", "aä€x"};
  const std::string_view ends[] = {"", "x", "x", "x", "€x", "€x", "ä€x", "aä€x", "aä€x"};
  for (std::size_t bytes = 0; bytes < 9; ++bytes) {
    CAPTURE(bytes);
    CHECK(beginning_of(text, bytes) == beginnings[bytes]);
    CHECK(end_of(text, bytes) == ends[bytes]);
  }
  CHECK(!continues_character('a'));
  CHECK(!continues_character(text[1]));
  CHECK(continues_character(text[2]));
}

TEST_CASE("utf8: of bytes that begin no character, nothing is left") {
  const std::string text = "\xa4\xa4\xa4";
  CHECK(beginning_of(text, 2).empty());
  CHECK(end_of(text, 2).empty());
  CHECK(beginning_of(text, 3) == text);
}
