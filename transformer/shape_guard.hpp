#pragma once

#include <string_view>

#include "baton/data.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Any extent, in a shape that expect_shape() compares with.
inline constexpr std::int64_t any = INT64_MAX;

/// Throws Error(invalid_argument) that names `what` and both shapes unless `found` is `expected`,
/// in which `any` stands for every extent.
void expect_shape(std::string_view what, const Shape& found, const Shape& expected);

/// Throws Error(invalid_argument) unless `value` is a multiple of `parts`: "heads: expected a
/// multiple of 4 (tensor parallelism), found 6".
void expect_multiple(std::string_view what, std::int64_t value, std::int64_t parts,
                     std::string_view of);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
