/// Exponentials as attention and cross-entropy take them.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "transformer/ops/kernels.hpp"

using namespace baton::transformer;

TEST_CASE_TEMPLATE("exponentials are exact to rounding, and their sum is theirs", T, float,
                   double) {
  const T epsilon = std::numeric_limits<T>::epsilon();
  for (const std::size_t n : {1u, 5u, 16u, 64u, 100u, 4099u}) {
    CAPTURE(n);
    std::vector<T> x(n), y(n);
    const T shift = T(1.5);
    for (std::size_t i = 0; i < n; ++i)  // from -86 to 80
      x[i] = shift - 86 + 166 * static_cast<T>(i) / static_cast<T>(n);
    const double sum = ops::kernels<ops::SoftmaxKernels<T>>().exponentials(
        static_cast<std::int64_t>(n), x.data(), shift, y.data());
    double expected_sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double expected = std::exp(static_cast<double>(x[i] - shift));
      CHECK(std::abs(y[i] - expected) <= 2 * epsilon * expected);
      expected_sum += y[i];
    }
    CHECK(std::abs(sum - expected_sum) <= 1e3 * epsilon * expected_sum);
  }
}

TEST_CASE("exponentials at the ends of what a float holds") {
  std::vector<float> x, y(4000);
  for (int i = 0; i < 4000; ++i) x.push_back(static_cast<float>(i - 2000) / 20);  // -100 to 100
  ops::kernels<ops::SoftmaxKernels<float>>().exponentials(4000, x.data(), 0, y.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i]);
    const double expected = std::exp(static_cast<double>(x[i]));
    if (x[i] < -88.0f)
      CHECK(y[i] == 0);
    else if (x[i] > 88.5f)
      CHECK(y[i] == std::numeric_limits<float>::infinity());
    else if (x[i] < -87.3f)
      CHECK((y[i] == 0 || std::abs(y[i] - expected) <= 1e-6 * expected));
    else if (x[i] <= 88.3f || !std::isinf(y[i]))
      CHECK(std::abs(y[i] - expected) <= 2.4e-7 * expected);
    else
      CHECK(y[i] > 0);
  }
}

TEST_CASE_TEMPLATE("exponentials of what is no ordinary number", T, float, double) {
  const T huge = std::numeric_limits<T>::infinity(), none = std::numeric_limits<T>::quiet_NaN();
  std::vector<T> x = {none, -huge, -1000, 0, -none, huge, 1000, 1};
  for (int i = 0; i < 60; ++i) x.push_back(x[static_cast<std::size_t>(i)]);  // vectors, too
  std::vector<T> y(x.size());
  for (const std::size_t n : {std::size_t{8}, x.size()}) {
    const T sum = ops::kernels<ops::SoftmaxKernels<T>>().exponentials(static_cast<std::int64_t>(n),
                                                                      x.data(), 0, y.data());
    CHECK(std::isnan(sum));
    for (std::size_t i = 0; i < n; ++i) {
      CAPTURE(i);
      if (std::isnan(x[i]))
        CHECK(std::isnan(y[i]));
      else if (std::abs(x[i]) >= 1000)
        CHECK(y[i] == (x[i] > 0 ? huge : T(0)));
      else
        CHECK(y[i] == doctest::Approx(std::exp(x[i])));
    }
  }
}
