#pragma once
/// Random tensors, differences between tensors, and gradients by finite differences.

#include <algorithm>
#include <cmath>
#include <functional>

#include "transformer/random.hpp"
#include "transformer/tensor.hpp"

namespace support {

/// Uniform within [-1, 1), the same for every type; another one for each `stream`.
template <class T>
baton::transformer::Array<T> random_array(const baton::Shape& shape, std::uint64_t stream) {
  auto array = baton::transformer::Array<T>::uninitialized(shape);
  baton::transformer::fill_uniform(array.view(), {1, stream}, -1, 1);
  return array;
}

template <class To, class From>
baton::transformer::Array<To> converted(const baton::transformer::Array<From>& from) {
  auto to = baton::transformer::Array<To>::uninitialized(from.shape());
  std::transform(from.data(), from.data() + from.size(), to.data(),
                 [](From value) { return static_cast<To>(value); });
  return to;
}

/// The largest difference, relative to the largest element of what is expected, or to 1 if that is
/// smaller; not a number if any element is.
template <class T, class U>
double difference(const baton::transformer::Array<T>& found,
                  const baton::transformer::Array<U>& expected) {
  if (found.shape() != expected.shape()) return HUGE_VAL;
  double largest = 1, difference = 0;
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    const double f = found.data()[i], e = expected.data()[i];
    if (std::isnan(f) || std::isnan(e)) return NAN;
    largest = std::max(largest, std::abs(e));
    difference = std::max(difference, std::abs(f - e));
  }
  return difference / largest;
}

/// Σ a · b: a scalar of a function's result, whose gradient by the result is `b`.
inline double weighted(const baton::transformer::Array<double>& a,
                       const baton::transformer::Array<double>& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) sum += a.data()[i] * b.data()[i];
  return sum;
}

/// The gradient of `scalar()` by the elements of `x`, by central differences.
inline baton::transformer::Array<double> finite_differences(baton::transformer::Array<double>& x,
                                                            const std::function<double()>& scalar) {
  constexpr double step = 1e-5;
  auto gradient = baton::transformer::Array<double>::uninitialized(x.shape());
  for (std::int64_t i = 0; i < x.size(); ++i) {
    double& element = x.data()[i];
    const double value = element;
    element = value + step;
    const double above = scalar();
    element = value - step;
    const double below = scalar();
    element = value;
    gradient.data()[i] = (above - below) / (2 * step);
  }
  return gradient;
}

}  // namespace support
