#pragma once
/// How far two tensors are apart.

#include "../tensor.hpp"
#include "baton/export.hpp"

namespace BATON_API baton {
namespace transformer {

struct Comparison {
  /// Whether max_difference is at most the tolerance times `largest`. Not where anything is NaN.
  bool match = false;
  double max_difference = 0, mean_difference = 0;  ///< of elements, in magnitude
  double largest = 0;                              ///< magnitude of what was expected
  /// max_difference / largest; 0 where nothing differs.
  double relative() const;
};

/// Throws Error(invalid_argument) where shapes differ.
template <class T>
Comparison compare_tensors(View<const std::type_identity_t<T>> found,
                           View<const std::type_identity_t<T>> expected, double tolerance);

}  // namespace transformer
}  // namespace baton
