#include "shape_guard.hpp"

#include <fmt/core.h>

#include "baton/error.hpp"

namespace baton::transformer {
namespace {

bool fits(const Shape& found, const Shape& expected) {
  if (found.rank() != expected.rank()) return false;
  for (int d = 0; d < found.rank(); ++d)
    if (expected[d] != any && expected[d] != found[d]) return false;
  return true;
}

std::string with_wildcards(const Shape& shape) {
  std::string text = "[";
  for (int d = 0; d < shape.rank(); ++d) {
    if (d > 0) text += ", ";
    text += shape[d] == any ? "*" : std::to_string(shape[d]);
  }
  return text + "]";
}

}  // namespace

void expect_shape(std::string_view what, const Shape& found, const Shape& expected) {
  if (fits(found, expected)) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: expected shape {}, found {}", what,
                                                       with_wildcards(expected), found.text()));
}

void expect_multiple(std::string_view what, std::int64_t value, std::int64_t parts,
                     std::string_view of) {
  if (parts > 0 && value % parts == 0) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: expected a multiple of {} ({}), found {}", what, parts, of, value));
}

}  // namespace baton::transformer
