#pragma once
/// Differences of two tensors.

#include "../tensor.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// The difference of a tensor from the expected one.
struct Comparison {
  /// Whether max_difference is at most the tolerance times `largest`. False if there is a NaN.
  bool match = false;
  double max_difference = 0, mean_difference = 0;  ///< magnitudes, over all elements
  double largest = 0;                              ///< largest magnitude of the expected elements
  /// max_difference / largest; 0 if nothing differs.
  double relative() const;
};

/// Compares element by element. Throws Error(invalid_argument) if shapes differ.
template <class T>
Comparison compare_tensors(View<const std::type_identity_t<T>> found,
                           View<const std::type_identity_t<T>> expected, double tolerance);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
