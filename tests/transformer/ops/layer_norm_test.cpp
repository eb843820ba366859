/// Layer norm against plain loops, finite differences and PyTorch.

#include <doctest/doctest.h>

#include "support/ranks.hpp"
#include "transformer/compare.hpp"
#include "transformer/golden.hpp"
#include "transformer/ops/ops.hpp"

using namespace baton::transformer;
using support::converted;
using support::difference;
using support::random_array;

namespace {

constexpr double epsilon = 1e-3;

Array<double> reference(const Array<double>& x, const Array<double>& weight,
                        const Array<double>& bias) {
  const std::int64_t n = x.extent(1);
  Array<double> y(x.shape());
  for (std::int64_t r = 0; r < x.extent(0); ++r) {
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < n; ++i) mean += x.view()(r, i) / static_cast<double>(n);
    for (std::int64_t i = 0; i < n; ++i)
      variance += std::pow(x.view()(r, i) - mean, 2) / static_cast<double>(n);
    for (std::int64_t i = 0; i < n; ++i)
      y.view()(r, i) = (x.view()(r, i) - mean) / std::sqrt(variance + epsilon) * weight.data()[i] +
                       bias.data()[i];
  }
  return y;
}

}  // namespace

TEST_CASE("layer norm is that of loops, its derivatives are finite differences") {
  for (const auto& size : {std::pair(1, 1), {3, 2}, {2, 7}, {5, 16}, {3, 65}, {130, 3}}) {
    const int rows = size.first, n = size.second;
    CAPTURE(rows);
    CAPTURE(n);
    auto x = random_array<double>({rows, n}, 1), weight = random_array<double>({n}, 2);
    auto bias = random_array<double>({n}, 3);
    const auto dy = random_array<double>({rows, n}, 4);
    Array<double> y({rows, n}), stats({rows, 2});
    const auto forward = [&] {
      layer_norm<double>(x, weight, bias, epsilon, y.view(), stats.view());
      return support::weighted(y, dy);
    };
    forward();
    CHECK(difference(y, reference(x, weight, bias)) < 1e-13);

    Array<double> dx({rows, n}), dweight = weight.copy(), dbias = bias.copy();
    layer_norm_backward<double>(dy, x, weight, stats, dx.view(), dweight.view(), dbias.view());
    CHECK(difference(dx, support::finite_differences(x, forward)) < 1e-7);
    const auto plus = [](Array<double> gradient, const Array<double>& before) {
      add<double>(before, gradient.view());
      return gradient;
    };
    CHECK(difference(dweight, plus(support::finite_differences(weight, forward), weight)) < 1e-7);
    CHECK(difference(dbias, plus(support::finite_differences(bias, forward), bias)) < 1e-7);

    forward();
    Array<float> y32({rows, n}), stats32({rows, 2}), dx32({rows, n});
    const auto x32 = converted<float>(x), dy32 = converted<float>(dy);
    const auto weight32 = converted<float>(weight), bias32 = converted<float>(bias);
    auto dweight32 = weight32.copy(), dbias32 = bias32.copy();
    layer_norm<float>(x32, weight32, bias32, epsilon, y32.view(), stats32.view());
    CHECK(difference(y32, y) < 1e-5);
    layer_norm_backward<float>(dy32, x32, weight32, stats32, dx32.view(), dweight32.view(),
                               dbias32.view());
    CHECK(difference(dx32, dx) < 1e-5);
    CHECK(difference(dweight32, dweight) < 1e-5);
    CHECK(difference(dbias32, dbias) < 1e-5);
  }
}

TEST_CASE("a large mean costs no digits of the deviations") {
  const auto x = random_array<double>({2, 64}, 1);
  Array<double> ones({64}), zeros({64}), y({2, 64}), shifted({2, 64}), stats({2, 2});
  std::fill_n(ones.data(), 64, 1.0);
  layer_norm<double>(x, ones, zeros, 1e-5, y.view(), stats.view());
  auto far = x.copy();
  for (double& value : far.span()) value += 1e6;
  layer_norm<double>(far, ones, zeros, 1e-5, shifted.view(), stats.view());
  CHECK(difference(shifted, y) < 1e-8);
  CHECK(stats.view()(0, 0) == doctest::Approx(1e6).epsilon(1e-5));
}

TEST_CASE_TEMPLATE("as PyTorch", T, float, double) {
  const support::Golden golden("layer_norm");
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;
  const auto x = golden.operator()<T>("x"), weight = golden.operator()<T>("weight");
  const auto bias = golden.operator()<T>("bias"), dy = golden.operator()<T>("y.grad");
  Array<T> y(x.shape()), stats({6, 2}), dx(x.shape()), dweight({7}), dbias({7});
  layer_norm<T>(x, weight, bias, golden.number("epsilon"), y.view(), stats.view());
  CHECK(difference(y, golden("y")) < tolerance);
  layer_norm_backward<T>(dy, x, weight, stats, dx.view(), dweight.view(), dbias.view());
  CHECK(difference(dx, golden("x.grad")) < tolerance);
  CHECK(difference(dweight, golden("weight.grad")) < tolerance);
  CHECK(difference(dbias, golden("bias.grad")) < tolerance);
}

TEST_CASE("shapes that do not fit are named") {
  Array<float> x({2, 3}), n({3}), four({4}), stats({2, 2});
  CHECK(support::holds(support::error_of([&] {
                         layer_norm<float>(x, four, n, 1e-5, x.view(), stats.view());
                       }).what(),
                       {"layer_norm: weight", "[3]", "[4]"}));
  CHECK(support::holds(
      support::error_of([&] { layer_norm<float>(x, n, n, 1e-5, x.view(), x.view()); }).what(),
      {"layer_norm: stats", "[2, 2]", "[2, 3]"}));
  CHECK(support::holds(support::error_of([&] {
                         layer_norm_backward<float>(stats, x, n, stats, x.view(), n.view(),
                                                    n.view());
                       }).what(),
                       {"layer_norm_backward: dy", "[2, 3]", "[2, 2]"}));
}
