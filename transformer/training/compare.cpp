#include "compare.hpp"

#include <cmath>

#include "../accelerator.hpp"
#include "../instantiation.hpp"
#include "../shape_guard.hpp"

namespace baton::transformer {

double Comparison::relative() const { return max_difference == 0 ? 0 : max_difference / largest; }

template <class T>
Comparison compare_tensors(View<const std::type_identity_t<T>> found,
                           View<const std::type_identity_t<T>> expected, double tolerance) {
  expect_shape("compare_tensors", found.shape(), expected.shape());
  const Array<T> a = to_host<T>(found), b = to_host<T>(expected);
  Comparison comparison;
  const auto value = [](const Array<T>& of, std::int64_t i) {
    return static_cast<double>(widen(of.data()[i]));
  };
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(value(a, i) - value(b, i));
    sum += difference;
    // A NaN is larger than any number, and stays.
    if (!(difference <= comparison.max_difference) && !std::isnan(comparison.max_difference))
      comparison.max_difference = difference;
    comparison.largest = std::fmax(comparison.largest, std::abs(value(b, i)));
  }
  comparison.mean_difference = a.size() > 0 ? sum / static_cast<double>(a.size()) : 0;
  comparison.match = comparison.max_difference <= tolerance * comparison.largest;
  return comparison;
}

#define BATON_INSTANTIATE(T) \
  template BATON_INSTANTIATION Comparison compare_tensors<T>(View<const T>, View<const T>, double);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
