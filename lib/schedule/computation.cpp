#include "baton/schedule/computation.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "baton/error.hpp"

namespace baton {
namespace {

constexpr std::array<std::string_view, computation_kind_count> names{
    "forward", "backward", "backward_input", "backward_weight", "optimizer", "other"};

}  // namespace

std::string_view name(ComputationKind kind) { return names[static_cast<std::size_t>(kind)]; }

ComputationKind computation_kind_named(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected a class of computations ({}), found \"{}\"",
                            fmt::join(names, ", "), name));
  }
  return static_cast<ComputationKind>(found - names.begin());
}

}  // namespace baton
