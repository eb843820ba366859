#include "compare.hpp"

#include <cmath>

#include "../shape_guard.hpp"

namespace baton::transformer {

double Comparison::relative() const { return max_difference == 0 ? 0 : max_difference / largest; }

template <class T>
Comparison compare_tensors(View<const std::type_identity_t<T>> found, View<T> expected,
                           double tolerance) {
  expect_shape("compare_tensors", found.shape(), expected.shape());
  const auto a = found.reshaped({found.size()});
  const auto b = expected.reshaped({expected.size()});
  Comparison comparison;
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a(i)) - static_cast<double>(b(i)));
    sum += difference;
    // A NaN is larger than any number, and stays.
    if (!(difference <= comparison.max_difference) && !std::isnan(comparison.max_difference))
      comparison.max_difference = difference;
    comparison.largest = std::fmax(comparison.largest, std::abs(static_cast<double>(b(i))));
  }
  comparison.mean_difference = a.size() > 0 ? sum / static_cast<double>(a.size()) : 0;
  comparison.match = comparison.max_difference <= tolerance * comparison.largest;
  return comparison;
}

#define BATON_INSTANTIATE(T) template Comparison compare_tensors<T>(View<const T>, View<T>, double);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
