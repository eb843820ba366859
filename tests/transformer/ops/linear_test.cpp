/// Linear layers against plain loops.

#include <doctest/doctest.h>

#include "support/ranks.hpp"
#include "transformer/compare.hpp"
#include "transformer/ops/ops.hpp"

using namespace baton::transformer;
using baton::Shape;
using support::converted;
using support::difference;
using support::random_array;

namespace {

struct Sizes {
  std::int64_t rows, in, out;
};
const Sizes all_sizes[] = {{1, 1, 1},      {5, 7, 3},  {3, 1, 8},     {2, 9, 1},
                           {130, 17, 300}, {1, 64, 5}, {900, 3, 1030}};

/// y = x · weightᵀ + bias
Array<double> reference(const Array<double>& x, const Array<double>& weight,
                        const Array<double>& bias) {
  Array<double> y({x.extent(0), weight.extent(0)});
  for (std::int64_t r = 0; r < y.extent(0); ++r) {
    for (std::int64_t o = 0; o < y.extent(1); ++o) {
      double sum = bias.empty() ? 0 : bias.data()[o];
      for (std::int64_t i = 0; i < x.extent(1); ++i) sum += x.view()(r, i) * weight.view()(o, i);
      y.view()(r, o) = sum;
    }
  }
  return y;
}

}  // namespace

TEST_CASE_TEMPLATE("linear and its derivatives are those of loops", T, float, double) {
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
  for (const Sizes& size : all_sizes) {
    const std::int64_t rows = size.rows, in = size.in, out = size.out;
    CAPTURE(rows);
    CAPTURE(in);
    CAPTURE(out);
    const auto x = random_array<double>({rows, in}, 1), weight = random_array<double>({out, in}, 2);
    const auto bias = random_array<double>({out}, 3), dy = random_array<double>({rows, out}, 4);
    const auto tx = converted<T>(x), tweight = converted<T>(weight), tbias = converted<T>(bias);
    const auto tdy = converted<T>(dy);

    auto y = Array<T>::uninitialized({rows, out});
    std::fill_n(y.data(), y.size(), T(NAN));  // nothing of what was there may be left
    linear<T>(tx, tweight, tbias, y.view());
    CHECK(difference(y, reference(x, weight, bias)) < tolerance);
    linear<T>(tx, tweight, {}, y.view());
    CHECK(difference(y, reference(x, weight, {})) < tolerance);

    // dx = dy · weight, as linear() by the transposed weight.
    const auto across = Array<double>::copy_of(weight.view().transposed(0, 1));
    auto dx = converted<T>(x);
    linear_backward_input<T>(tdy, tweight, dx.view());
    CHECK(difference(dx, reference(dy, across, {})) < tolerance);
    linear_backward_input<T>(tdy, tweight, dx.view(), true);
    auto twice = reference(dy, across, {});
    for (double& value : twice.span()) value *= 2;
    CHECK(difference(dx, twice) < tolerance);

    // dweight += dyᵀ · x
    const auto columns_of_dy = Array<double>::copy_of(dy.view().transposed(0, 1));
    const auto columns_of_x = Array<double>::copy_of(x.view().transposed(0, 1));
    auto expected = reference(columns_of_dy, columns_of_x, {});
    for (std::int64_t i = 0; i < expected.size(); ++i) expected.data()[i] += weight.data()[i];
    auto expected_bias = bias.copy();
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t o = 0; o < out; ++o) expected_bias.data()[o] += dy.view()(r, o);
    for (const bool in_panels : {false, true}) {
      int calls = 0;
      auto dweight = tweight.copy(), dbias = tbias.copy();
      linear_backward_weight<T>(tx, tdy, dweight.view(), dbias.view(),
                                in_panels ? Meanwhile([&] { ++calls; }) : Meanwhile());
      CHECK(difference(dweight, expected) < tolerance);
      CHECK(difference(dbias, expected_bias) < tolerance);
      CHECK((calls > 0) == in_panels);
      if (in_panels && rows == 900) CHECK(calls == 6);
    }
    auto dweight = tweight.copy();
    linear_backward_weight<T>(tx, tdy, dweight.view(), {});
    CHECK(difference(dweight, expected) < tolerance);
  }
}

TEST_CASE_TEMPLATE("no rows, no outputs, and nothing to sum over", T, float, double) {
  Array<T> none({0, 3}), weight({2, 3}), dy({0, 2});
  linear<T>(none, weight, {}, dy.view());
  auto dweight = random_array<T>({2, 3}, 1), dbias = random_array<T>({2}, 1);
  const auto before = dweight.copy(), bias_before = dbias.copy();
  linear_backward_weight<T>(none, dy, dweight.view(), dbias.view());
  CHECK(difference(dweight, before) == 0);
  CHECK(difference(dbias, bias_before) == 0);

  Array<T> row({2, 3}), no_weight({0, 3}), no_bias({0}), no_outputs({2, 0});
  auto dx = random_array<T>({2, 3}, 1);
  linear<T>(row, no_weight, no_bias, no_outputs.view());
  linear_backward_input<T>(no_outputs, no_weight, dx.view());
  CHECK(difference(dx, Array<T>({2, 3})) == 0);
  linear_backward_weight<T>(row, no_outputs, no_weight.view(), no_bias.view());

  for (const std::int64_t out : {2, 40}) {
    const Array<T> rows({4, 0}), zeros({4, out}), no_inputs({out, 0}), no_outputs({0, out});
    auto y = random_array<T>({4, out}, 1), dx = y.copy(), sum = y.copy();
    const auto before = y.copy();
    linear<T>(rows, no_inputs, {}, y.view());
    CHECK(difference(y, zeros) == 0);
    linear<T>(rows, no_inputs, zeros.view().select(0, 0), y.view());
    CHECK(difference(y, zeros) == 0);
    linear_backward_input<T>(rows, no_outputs, dx.view());
    CHECK(difference(dx, zeros) == 0);
    linear_backward_input<T>(rows, no_outputs, sum.view(), true);
    CHECK(difference(sum, before) == 0);
  }
}

TEST_CASE("leading dimensions are rows") {
  const auto x = random_array<double>({2, 3, 4}, 1), weight = random_array<double>({5, 4}, 2);
  Array<double> y({2, 3, 5});
  linear<double>(x, weight, {}, y.view());
  CHECK(difference(y.reshaped({6, 5}), reference(x.reshaped({6, 4}), weight, {})) < 1e-13);
}

TEST_CASE("shapes that do not fit are named") {
  Array<float> x({2, 3, 4}), weight({5, 4}), y({2, 3, 5}), flat({6, 5});
  const Array<float> wide({2, 3, 6}), four({4}), scalar(Shape{});
  const auto sentence = [](const auto& call) {
    return std::string(support::error_of(call).what());
  };
  CHECK(support::holds(sentence([&] { linear<float>(wide, weight, {}, y.view()); }),
                       {"linear: x", "[2, 3, 4]", "[2, 3, 6]"}));
  CHECK(support::holds(sentence([&] { linear<float>(x, weight, {}, flat.view()); }),
                       {"linear: y", "[2, 3, 5]", "[6, 5]"}));
  CHECK(support::holds(sentence([&] { linear<float>(x, weight, four, y.view()); }),
                       {"linear: bias", "[5]", "[4]"}));
  CHECK(support::holds(sentence([&] { linear<float>(x, y, {}, y.view()); }),
                       {"linear: weight", "[*, *]", "[2, 3, 5]"}));
  CHECK(support::holds(sentence([&] { linear<float>(scalar, weight, {}, y.view()); }),
                       {"linear: x", "[4]", "[]"}));
  CHECK(support::holds(sentence([&] { linear_backward_input<float>(x, weight, x.view()); }),
                       {"linear_backward_input: dy", "[2, 3, 5]", "[2, 3, 4]"}));
  CHECK(support::holds(
      sentence([&] { linear_backward_weight<float>(x, x, weight.view(), View<float>()); }),
      {"linear_backward_weight: dy", "[2, 3, 5]", "[2, 3, 4]"}));
  CHECK(support::holds(sentence([] { use_blas_threads(0); }), {"at least 1 thread", "0"}));
}
