/// Activations against the definition, finite differences and PyTorch.

#include <doctest/doctest.h>

#include <numbers>

#include "support/ranks.hpp"
#include "transformer/compare.hpp"
#include "transformer/golden.hpp"
#include "transformer/ops/ops.hpp"

using namespace baton::transformer;
using support::converted;
using support::difference;
using support::random_array;

namespace {

/// From -15 to 15, 1/1000 apart; beyond where the normal distribution's tails are 0 in f32.
Array<double> grid() {
  Array<double> x({30001});
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data()[i] = static_cast<float>(static_cast<double>(i) / 1000 - 15);
  return x;
}

double gelu(double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }
double gelu_tanh(double x) {
  const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(u));
}

}  // namespace

TEST_CASE("both GELUs in f64 are exact, in f32 to 2e-7 everywhere") {
  const auto x = grid();
  const auto x32 = converted<float>(x);
  Array<double> y(x.shape());
  Array<float> y32(x.shape());
  for (const Activation f : {Activation::gelu, Activation::gelu_tanh}) {
    const auto reference = f == Activation::gelu ? gelu : gelu_tanh;
    CAPTURE(name(f));
    activate<double>(f, x, y.view());
    activate<float>(f, x32, y32.view());
    double largest = 0, largest32 = 0;
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const double expected = reference(x.data()[i]), unit = std::max(1.0, std::abs(expected));
      largest = std::max(largest, std::abs(y.data()[i] - expected) / unit);
      largest32 = std::max(largest32, std::abs(y32.data()[i] - expected) / unit);
    }
    CHECK(largest < 1e-15);
    CHECK(largest32 < 2e-7);
  }
}

TEST_CASE_TEMPLATE("GELU of large numbers is these numbers or 0, its derivative 1 or 0", T, float,
                   double) {
  for (const Activation f : {Activation::gelu, Activation::gelu_tanh}) {
    for (const double large : {1e3, 1e7, 1e15, 1e30}) {
      CAPTURE(large);
      Array<T> x({2}), ones({2}), y({2}), dx({2});
      x.data()[0] = static_cast<T>(large), x.data()[1] = -x.data()[0];
      ones.data()[0] = ones.data()[1] = 1;
      activate<T>(f, x, y.view());
      activate_backward<T>(f, ones, x, dx.view());
      CHECK((y.data()[0] == x.data()[0] && y.data()[1] == 0));
      CHECK((dx.data()[0] == 1 && dx.data()[1] == 0));
    }
  }
}

TEST_CASE("GELU's small values far left keep their digits in f32") {
  Array<float> x({3}), y({3});
  const float values[] = {-3, -6, -9};
  std::copy_n(values, 3, x.data());
  activate<float>(Activation::gelu, x, y.view());
  for (int i = 0; i < 3; ++i) CHECK(std::abs(y.data()[i] / gelu(values[i]) - 1) < 1e-5);
}

TEST_CASE("derivatives are finite differences, in place too") {
  for (const Activation f : activations) {
    for (const std::int64_t n : {1, 2, 15, 16, 33, 200}) {
      CAPTURE(n);
      auto x = random_array<double>({n}, 1);
      const auto dy = random_array<double>({n}, 2);
      for (double& value : x.span()) value *= 4;
      Array<double> y({n}), dx({n});
      const auto forward = [&] {
        activate<double>(f, x, y.view());
        return support::weighted(y, dy);
      };
      activate_backward<double>(f, dy, x, dx.view());
      CHECK(difference(dx, support::finite_differences(x, forward)) < 1e-8);
      auto in_place = dy.copy();
      activate_backward<double>(f, in_place, x, in_place.view());
      CHECK(difference(in_place, dx) == 0);

      Array<float> y32({n}), dx32({n});
      const auto x32 = converted<float>(x), dy32 = converted<float>(dy);
      forward();
      activate<float>(f, x32, y32.view());
      CHECK(difference(y32, y) < 1e-6);
      activate_backward<float>(f, dy32, x32, dx32.view());
      CHECK(difference(dx32, dx) < 1e-6);
    }
  }
}

TEST_CASE("GELU's derivative in f32 is right to 4e-7 everywhere") {
  const auto x = grid();
  Array<double> ones(x.shape()), dx(x.shape());
  std::fill_n(ones.data(), ones.size(), 1.0);
  const auto x32 = converted<float>(x), ones32 = converted<float>(ones);
  Array<float> dx32(x.shape());
  for (const auto& [f, bound] :
       {std::pair(Activation::gelu, 3e-7), std::pair(Activation::gelu_tanh, 4e-7)}) {
    activate_backward<double>(f, ones, x, dx.view());
    activate_backward<float>(f, ones32, x32, dx32.view());
    CHECK(difference(dx32, dx) < bound);
  }
}

TEST_CASE_TEMPLATE("what is not a number stays so", T, float, double) {
  for (const Activation f : activations) {
    Array<T> x({17}), y({17});
    x.data()[3] = x.data()[16] = T(NAN);
    activate<T>(f, x, y.view());
    for (int i = 0; i < 17; ++i) CHECK(std::isnan(y.data()[i]) == (i == 3 || i == 16));
  }
}

TEST_CASE_TEMPLATE("linear_activate is linear, then activate, in place or not", T, float, double,
                   baton::bf16) {
  const auto x = random_array<T>({2, 7, 9}, 1), weight = random_array<T>({5, 9}, 2),
             bias = random_array<T>({5}, 3);
  const auto same = [](const Array<T>& a, const Array<T>& b) {
    return std::equal(a.data(), a.data() + a.size(), b.data());
  };
  for (const Activation f : activations) {
    for (const View<const T>& added : {View<const T>(bias), View<const T>()}) {
      Array<T> sum({2, 7, 5}), expected(sum.shape());
      linear<T>(x, weight, added, sum.view());
      activate<T>(f, sum, expected.view());
      Array<T> pre(sum.shape()), y(sum.shape()), both(sum.shape());
      linear_activate<T>(f, x, weight, added, pre.view(), y.view());
      CHECK(same(pre, sum));
      CHECK(same(y, expected));
      linear_activate<T>(f, x, weight, added, both.view(), both.view());
      CHECK(same(both, expected));
    }
  }
}

TEST_CASE_TEMPLATE("derivatives of results are those where derivable_from_result() says so", T,
                   float, double, baton::bf16) {
  auto x = random_array<T>({40, 13}, 1);
  const auto dy = random_array<T>(x.shape(), 2);
  x.data()[0] = narrow<T>(0);
  x.data()[1] = narrow<T>(static_cast<Wide<T>>(NAN));
  for (const Activation f : activations) {
    Array<T> y(x.shape()), by_x(x.shape()), by_y(x.shape());
    activate<T>(f, x, y.view());
    activate_backward<T>(f, dy, x, by_x.view());
    activate_backward<T>(f, dy, y, by_y.view());
    const bool same = std::equal(by_x.data() + 2, by_x.data() + x.size(), by_y.data() + 2);
    CHECK(same == derivable_from_result(f));
    if (same) CHECK((widen(by_y.data()[0]) == 0 && widen(by_y.data()[1]) == 0));
  }
}

TEST_CASE_TEMPLATE("GELU as PyTorch", T, float, double) {
  const double tolerance = sizeof(T) == 4 ? 1e-6 : 1e-14;
  for (const Activation f : {Activation::gelu, Activation::gelu_tanh}) {
    const support::Golden golden{std::string(name(f))};
    const auto x = golden.operator()<T>("x"), dy = golden.operator()<T>("y.grad");
    Array<T> y(x.shape()), dx(x.shape());
    activate<T>(f, x, y.view());
    CHECK(difference(y, golden("y")) < tolerance);
    activate_backward<T>(f, dy, x, dx.view());
    CHECK(difference(dx, golden("x.grad")) < tolerance);
  }
}

TEST_CASE("add of strided views") {
  const auto x = random_array<double>({5, 3}, 1), y = random_array<double>({4, 3, 5}, 2);
  auto sum = y.copy();
  add<double>(x.view().transposed(0, 1), sum.view().select(0, 2));
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 5; ++k)
        CHECK(sum.view()(i, j, k) == y.view()(i, j, k) + (i == 2 ? x.view()(k, j) : 0));
}

TEST_CASE("add; shapes that do not fit are named") {
  auto x = random_array<double>({3, 5}, 1);
  const auto y = random_array<double>({3, 5}, 2);
  auto sum = y.copy();
  add<double>(x, sum.view());
  for (int i = 0; i < 15; ++i) CHECK(sum.data()[i] == x.data()[i] + y.data()[i]);

  Array<double> other({5, 3});
  const auto sentence = [](const auto& call) {
    return std::string(support::error_of(call).what());
  };
  CHECK(support::holds(sentence([&] { add<double>(x, other.view()); }), {"[3, 5]", "[5, 3]"}));
  CHECK(support::holds(sentence([&] { activate<double>(Activation::relu, x, other.view()); }),
                       {"activate: y", "[3, 5]", "[5, 3]"}));
  CHECK(support::holds(
      sentence([&] { activate_backward<double>(Activation::gelu, other, x, x.view()); }),
      {"activate_backward: dy", "[3, 5]", "[5, 3]"}));
  CHECK(support::holds(sentence([&] {
                         activate<double>(Activation::relu, x.view().transposed(0, 1),
                                          other.view());
                       }),
                       {"activate", "contiguous", "[5, 3]"}));
  Array<double> weight({4, 5}), fits({3, 4});
  CHECK(support::holds(sentence([&] {
                         linear_activate<double>(Activation::relu, x, weight, {}, other.view(),
                                                 fits.view());
                       }),
                       {"linear: y", "[3, 4]", "[5, 3]"}));
  CHECK(support::holds(sentence([&] {
                         linear_activate<double>(Activation::relu, x, weight, {}, fits.view(),
                                                 other.view());
                       }),
                       {"linear_activate: y", "[3, 4]", "[5, 3]"}));
  CHECK(name(Activation::relu) == "relu");
  CHECK(name(Activation::gelu) == "gelu");
  CHECK(name(Activation::gelu_tanh) == "gelu_tanh");
}
