#pragma once
/// Conditions that several operations have for their views.

#include <fmt/core.h>

#include <string_view>

#include "../tensor.hpp"
#include "baton/error.hpp"

namespace baton::transformer::ops {

/// Throws Error(invalid_argument) that names `what` unless all views are contiguous.
template <class... T>
void expect_contiguous(std::string_view what, const View<T>&... views) {
  const auto expect = [&](const auto& view) {
    if (view.contiguous()) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected contiguous elements, found {} with strides", what,
                            view.shape().text()));
  };
  (expect(views), ...);
}

/// Throws Error(invalid_argument) that names `what` if the view has no memory: parameters that are
/// divided among ranks have none while no unit uses them.
template <class T>
void expect_values(std::string_view what, const View<T>& view) {
  if (!view.empty()) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{}: expected the values of {}, found none at present, as of a model that "
                  "is sharded and used without DataParallel::attach()",
                  what, view.shape().text()));
}

}  // namespace baton::transformer::ops
