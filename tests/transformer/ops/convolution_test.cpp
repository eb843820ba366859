/// Convolution and pooling against plain loops over [n, c, h, w], derivatives against finite
/// differences, f32 against f64, every order of channels.

#include "transformer/ops/convolution.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "support/ranks.hpp"
#include "transformer/compare.hpp"
#include "transformer/stand_in_accelerator.hpp"

using namespace baton;
using namespace baton::transformer;
using support::converted;
using support::difference;
using support::finite_differences;
using support::random_array;
using support::weighted;

namespace {

struct Case {
  std::int64_t n, inputs, outputs, h, w;
  Window window;

  std::string text() const {
    return fmt::format("n {} channels {} -> {} image {} x {} window {} stride {} padding {}", n,
                       inputs, outputs, h, w, window.size, window.stride, window.padding);
  }
  Shape x() const { return {n, inputs, h, w}; }
  Shape y() const { return {n, outputs, window.places(h), window.places(w)}; }
  Shape weight() const { return {outputs, inputs, window.size, window.size}; }
};

const Case cases[] = {
    {2, 3, 4, 5, 6, {}},           {1, 1, 1, 1, 1, {}},        {3, 16, 32, 4, 4, {}},
    {2, 32, 16, 7, 5, {}},         {2, 8, 24, 3, 9, {}},       {5, 3, 16, 32, 32, {}},
    {3, 16, 16, 8, 8, {3, 2, 1}},  {2, 4, 3, 7, 8, {5, 2, 2}}, {2, 16, 32, 4, 3, {1, 1, 0}},
    {2, 3, 16, 9, 10, {3, 3, 0}},  {0, 16, 16, 4, 4, {}},      {2, 5, 7, 2, 2, {3, 1, 2}},
    {2, 16, 8, 11, 11, {4, 3, 1}},
};

/// [n, c, h, w] as [n, c / b, h, w, b].
template <class T>
Array<T> in_blocks(const Array<T>& plain, std::int64_t b) {
  const Shape& s = plain.shape();
  const Array<T> apart = plain.reshaped({s[0], s[1] / b, b, s[2], s[3]});
  return Array<T>::copy_of(apart.view().transposed(2, 3).transposed(3, 4));
}
/// And back.
template <class T>
Array<T> plain_of(const Array<T>& images) {
  const Shape& s = images.shape();
  return Array<T>::copy_of(images.view().transposed(3, 4).transposed(2, 3))
      .reshaped({s[0], s[1] * s[4], s[2], s[3]});
}

/// Those that this processor's oneDNN has fast ways for, and plain ones.
std::vector<std::int64_t> blocks_of(std::int64_t channels) {
  std::vector<std::int64_t> blocks{1};
  if (channels > 1) blocks.push_back(channels);
  for (const std::int64_t b : {8, 16})
    if (channels % b == 0 && channels > b) blocks.push_back(b);
  return blocks;
}

/// The definition.
Array<double> by_loops(const Array<double>& x, const Array<double>& weight,
                       const Array<double>& bias, const Case& c, bool relu) {
  Array<double> y(c.y());
  const auto& [size, stride, padding] = c.window;
  for (std::int64_t n = 0; n < c.n; ++n)
    for (std::int64_t o = 0; o < c.outputs; ++o)
      for (std::int64_t row = 0; row < y.extent(2); ++row)
        for (std::int64_t column = 0; column < y.extent(3); ++column) {
          double sum = bias.empty() ? 0 : bias.view()(o);
          for (std::int64_t i = 0; i < c.inputs; ++i)
            for (std::int64_t a = 0; a < size; ++a)
              for (std::int64_t b = 0; b < size; ++b) {
                const std::int64_t r = row * stride + a - padding,
                                   k = column * stride + b - padding;
                if (r < 0 || k < 0 || r >= c.h || k >= c.w) continue;
                sum += x.view()(n, i, r, k) * weight.view()(o, i, a, b);
              }
          y.view()(n, o, row, column) = relu ? std::max(sum, 0.0) : sum;
        }
  return y;
}

/// Gradients of a convolution from its definition, by linearity: that by an element of x or of the
/// weight is the sum of dy where the other factor is.
struct Gradients {
  Array<double> dx, dweight, dbias;
};
Gradients by_loops_backward(const Array<double>& x, const Array<double>& weight,
                            const Array<double>& dy, const Case& c) {
  Gradients g{Array<double>(c.x()), Array<double>(c.weight()), Array<double>({c.outputs})};
  const auto& [size, stride, padding] = c.window;
  for (std::int64_t n = 0; n < c.n; ++n)
    for (std::int64_t o = 0; o < c.outputs; ++o)
      for (std::int64_t row = 0; row < dy.extent(2); ++row)
        for (std::int64_t column = 0; column < dy.extent(3); ++column) {
          const double d = dy.view()(n, o, row, column);
          g.dbias.view()(o) += d;
          for (std::int64_t i = 0; i < c.inputs; ++i)
            for (std::int64_t a = 0; a < size; ++a)
              for (std::int64_t b = 0; b < size; ++b) {
                const std::int64_t r = row * stride + a - padding,
                                   k = column * stride + b - padding;
                if (r < 0 || k < 0 || r >= c.h || k >= c.w) continue;
                g.dx.view()(n, i, r, k) += d * weight.view()(o, i, a, b);
                g.dweight.view()(o, i, a, b) += d * x.view()(n, i, r, k);
              }
        }
  return g;
}

template <class T>
Array<double> wide(const Array<T>& x) {
  if constexpr (std::is_same_v<T, bf16>) {
    Array<double> to(x.shape());
    for (std::int64_t i = 0; i < x.size(); ++i) to.data()[i] = widen(x.data()[i]);
    return to;
  } else {
    return converted<double>(x);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("convolution and its gradients are those of loops, in every order of channels",
                   T, float, double, bf16) {
  const double tolerance = sizeof(T) == 8 ? 1e-12 : sizeof(T) == 4 ? 1e-5 : 0.02;
  for (const Case& c : cases) {
    const auto x = random_array<T>(c.x(), 1), weight = random_array<T>(c.weight(), 2),
               bias = random_array<T>({c.outputs}, 3), dy = random_array<T>(c.y(), 4);
    const Gradients expected = by_loops_backward(wide(x), wide(weight), wide(dy), c);
    for (const auto& with : {std::pair{false, false}, {true, true}, {false, true}}) {
      const bool relu = with.first, biased = with.second;
      const Array<double> y =
          by_loops(wide(x), wide(weight), biased ? wide(bias) : Array<double>(), c, relu);
      for (const std::int64_t b : blocks_of(c.inputs)) {
        for (const std::int64_t out : blocks_of(c.outputs)) {
          CAPTURE(c.text());
          CAPTURE(relu);
          CAPTURE(biased);
          CAPTURE(b);
          CAPTURE(out);
          auto found = in_blocks(random_array<T>(c.y(), 5), out);
          const auto images = in_blocks(x, b);
          convolution<T>(images, weight, biased ? bias.view() : View<const T>(), c.window, relu,
                         found.view());
          CHECK(difference(wide(plain_of(found)), y) <= tolerance);
        }
      }
    }
    for (const std::int64_t b : blocks_of(c.inputs)) {
      for (const std::int64_t out : blocks_of(c.outputs)) {
        for (const bool in_pieces : {false, true}) {
          CAPTURE(c.text());
          CAPTURE(b);
          CAPTURE(out);
          int calls = 0;
          const Meanwhile meanwhile = in_pieces ? Meanwhile([&] { ++calls; }) : Meanwhile();
          const auto images = in_blocks(x, b), gradients = in_blocks(dy, out);
          auto dx = in_blocks(random_array<T>(c.x(), 5), b);
          convolution_backward_input<T>(gradients, weight, c.window, dx.view(), meanwhile);
          CHECK(difference(wide(plain_of(dx)), expected.dx) <= tolerance);
          // They are added to.
          auto dweight = random_array<T>(c.weight(), 6), dbias = random_array<T>({c.outputs}, 7);
          const auto weight_before = wide(dweight), bias_before = wide(dbias);
          convolution_backward_weight<T>(images, gradients, c.window, dweight.view(), dbias.view(),
                                         meanwhile);
          Array<double> weight_sum = expected.dweight.copy(), bias_sum = expected.dbias.copy();
          add<double>(weight_before, weight_sum.view());
          add<double>(bias_before, bias_sum.view());
          CHECK(difference(wide(dweight), weight_sum) <= tolerance);
          CHECK(difference(wide(dbias), bias_sum) <= tolerance);
          auto alone = random_array<T>(c.weight(), 6);
          convolution_backward_weight<T>(images, gradients, c.window, alone.view(), View<T>(),
                                         meanwhile);
          CHECK(difference(wide(alone), weight_sum) <= tolerance);
          const std::int64_t each = std::max<std::int64_t>(4096 / (c.y()[2] * c.y()[3]), 1);
          CHECK(calls == (in_pieces ? 3 * ((c.n + each - 1) / each) : 0));
        }
      }
    }
  }
}

TEST_CASE("a convolution's derivatives are finite differences'") {
  const Case c{2, 3, 4, 5, 4, {3, 2, 1}};
  auto x = random_array<double>(c.x(), 1), weight = random_array<double>(c.weight(), 2),
       bias = random_array<double>({c.outputs}, 3);
  const auto dy = random_array<double>(c.y(), 4);
  const auto loss = [&] {
    auto y = in_blocks(dy, 1);
    const auto images = in_blocks(x, 1);
    convolution<double>(images, weight, bias, c.window, false, y.view());
    return weighted(plain_of(y), dy);
  };
  const auto images = in_blocks(x, 1), gradients = in_blocks(dy, 1);
  auto dx = images.copy();
  Array<double> dweight(c.weight()), dbias({c.outputs});
  convolution_backward_input<double>(gradients, weight, c.window, dx.view());
  convolution_backward_weight<double>(images, gradients, c.window, dweight.view(), dbias.view());
  CHECK(difference(plain_of(dx), finite_differences(x, loss)) <= 1e-8);
  CHECK(difference(dweight, finite_differences(weight, loss)) <= 1e-8);
  CHECK(difference(dbias, finite_differences(bias, loss)) <= 1e-8);
}

TEST_CASE_TEMPLATE("the largest of four pixels, and where it is", T, float, double, bf16) {
  for (const Shape& shape : {Shape{2, 3, 4, 6}, Shape{1, 16, 5, 3}, Shape{2, 32, 2, 2},
                             Shape{3, 8, 1, 4}, Shape{0, 4, 4, 4}}) {
    const auto x = random_array<T>(shape, 1);
    const auto pooled = shape.with(2, shape[2] / 2).with(3, shape[3] / 2);
    const auto dy = random_array<T>(pooled, 2);
    for (const std::int64_t b : blocks_of(shape[1])) {
      CAPTURE(shape.text());
      CAPTURE(b);
      const auto images = in_blocks(x, b), gradients = in_blocks(dy, b);
      auto y = Array<T>::uninitialized(gradients.shape());
      auto places = Array<std::uint8_t>::uninitialized(y.shape());
      max_pool<T>(images, y.view(), places.view());
      auto dx = in_blocks(random_array<T>(shape, 3), b);
      max_pool_backward<T>(gradients, places, dx.view());
      const auto found = plain_of(y), found_dx = plain_of(dx);
      int wrong = 0;
      auto expected_dx = Array<T>(shape);
      for (std::int64_t n = 0; n < shape[0]; ++n)
        for (std::int64_t c = 0; c < shape[1]; ++c)
          for (std::int64_t i = 0; i < pooled[2]; ++i)
            for (std::int64_t j = 0; j < pooled[3]; ++j) {
              int place = 0;
              const auto at = [&](int p) {
                return widen(x.view()(n, c, 2 * i + p / 2, 2 * j + p % 2));
              };
              for (int p = 1; p < 4; ++p)
                if (at(p) > at(place)) place = p;
              wrong += widen(found.view()(n, c, i, j)) != at(place);
              wrong += places.view()(n, c / b, i, j, c % b) != place;
              expected_dx.view()(n, c, 2 * i + place / 2, 2 * j + place % 2) =
                  dy.view()(n, c, i, j);
            }
      CHECK(wrong == 0);
      CHECK(difference(wide(found_dx), wide(expected_dx)) == 0);
    }
  }
  // Of equal ones the first; NaN stays, wherever it is and whatever follows.
  for (const std::int64_t b : {1, 5, 8, 16}) {
    for (int place = 0; place < 4; ++place) {
      Array<T> x({1, 1, 2, 4, b}), y({1, 1, 1, 2, b});
      Array<std::uint8_t> places(y.shape());
      for (std::int64_t k = 0; k < b; ++k)
        x.view()(0, 0, place / 2, 2 + place % 2, k) = narrow<T>(static_cast<Wide<T>>(NAN));
      max_pool<T>(x, y.view(), places.view());
      for (std::int64_t k = 0; k < b; ++k) {
        CHECK((places.view()(0, 0, 0, 0, k) == 0 && places.view()(0, 0, 0, 1, k) == place));
        CHECK(widen(y.view()(0, 0, 0, 0, k)) == 0);
        CHECK(std::isnan(widen(y.view()(0, 0, 0, 1, k))));
      }
    }
  }
}

TEST_CASE_TEMPLATE("means of parts of images, which may repeat pixels", T, float, double, bf16) {
  const double tolerance = sizeof(T) == 8 ? 1e-14 : sizeof(T) == 4 ? 1e-6 : 0.01;
  for (const Shape& shape :
       {Shape{2, 16, 7, 7}, Shape{2, 16, 1, 1}, Shape{1, 3, 2, 5}, Shape{2, 8, 14, 9}}) {
    for (const std::int64_t parts : {1, 2, 7}) {
      const auto x = random_array<T>(shape, 1);
      const auto pooled = shape.with(2, parts).with(3, parts);
      const auto dy = random_array<T>(pooled, 2);
      Array<double> expected(pooled), expected_dx(shape);
      for (std::int64_t n = 0; n < shape[0]; ++n)
        for (std::int64_t c = 0; c < shape[1]; ++c)
          for (std::int64_t i = 0; i < parts; ++i)
            for (std::int64_t j = 0; j < parts; ++j) {
              const auto begin = [&](std::int64_t part, std::int64_t of) {
                return part * of / parts;
              };
              const auto end = [&](std::int64_t part, std::int64_t of) {
                return ((part + 1) * of + parts - 1) / parts;
              };
              const std::int64_t r0 = begin(i, shape[2]), r1 = end(i, shape[2]),
                                 c0 = begin(j, shape[3]), c1 = end(j, shape[3]);
              const auto pixels = static_cast<double>((r1 - r0) * (c1 - c0));
              for (std::int64_t r = r0; r < r1; ++r)
                for (std::int64_t k = c0; k < c1; ++k) {
                  expected.view()(n, c, i, j) +=
                      static_cast<double>(widen(x.view()(n, c, r, k))) / pixels;
                  expected_dx.view()(n, c, r, k) +=
                      static_cast<double>(widen(dy.view()(n, c, i, j))) / pixels;
                }
            }
      for (const std::int64_t b : blocks_of(shape[1])) {
        CAPTURE(shape.text());
        CAPTURE(parts);
        CAPTURE(b);
        auto y = Array<T>::uninitialized(pooled);
        const auto images = in_blocks(x, b);
        average_pool<T>(images, y.view());
        CHECK(difference(wide(y), expected) <= tolerance);
        auto dx = in_blocks(random_array<T>(shape, 3), b);
        average_pool_backward<T>(dy, dx.view());
        CHECK(difference(wide(plain_of(dx)), expected_dx) <= tolerance);
      }
    }
  }
}

TEST_CASE_TEMPLATE("the order of channels that is fastest divides them", T, float, double, bf16) {
  for (const std::int64_t channels : {1, 3, 8, 16, 24, 64, 100}) {
    const std::int64_t b = channel_block<T>(channels);
    CHECK(b >= 1);
    CHECK(channels % b == 0);
  }
}

TEST_CASE("convolution and pooling refuse operands that do not fit, and name both") {
  const auto refused = [](const auto& call, const std::vector<std::string>& parts) {
    const Error error = support::error_of(call);
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(support::holds(error.what(), parts), std::string(error.what()));
  };
  const Array<float> x({2, 1, 6, 6, 4}), weight({8, 4, 3, 3}), bias({8});
  Array<float> y({2, 8, 6, 6, 1}), four({2, 4, 6, 6}), small({2, 1, 1, 1, 4});
  refused([&] { convolution<float>(four, weight, bias, {}, false, y.view()); },
          {"convolution: x", "[*, *, *, *, *]", "[2, 4, 6, 6]"});
  refused(
      [&] {
        convolution<float>(x, weight, bias, {3, 2, 1}, false, y.view());
      },
      {"convolution: y", "[2, *, 3, 3, *]", "[2, 8, 6, 6, 1]"});
  refused([&] { convolution<float>(x, weight, weight, {}, false, y.view()); },
          {"convolution: bias", "[8]", "[8, 4, 3, 3]"});
  refused(
      [&] {
        convolution<float>(x, weight, bias, {0, 1, 1}, false, y.view());
      },
      {"size and stride of at least 1", "size 0"});
  refused(
      [&] {
        convolution<float>(small, weight, bias, {3, 1, 0}, false, y.view());
      },
      {"a window of 3 with padding 0", "[2, 1, 1, 1, 4]"});
  refused([&] { convolution_backward_input<float>(y, bias, {}, small.view()); },
          {"convolution_backward_input: y", "[2, *, 1, 1, *]"});
  refused([&] { convolution_backward_weight<float>(x, y, {}, y.view(), {}); },
          {"convolution_backward_weight: weight", "[8, 4, 3, 3]", "[2, 8, 6, 6, 1]"});
  Array<std::uint8_t> places({2, 1, 3, 3, 4});
  refused([&] { max_pool<float>(x, y.view(), places.view()); },
          {"max_pool: y", "[2, 1, 3, 3, 4]", "[2, 8, 6, 6, 1]"});
  refused([&] { average_pool<float>(x, y.view()); }, {"average_pool: y", "[2, 4, *, *]"});
}

TEST_CASE("convolution and pooling refuse a thread that has an accelerator") {
  const auto device = std::make_shared<support::StandInDevice>(support::StandInOptions{});
  support::StandInAccelerator accelerator(device);
  const Array<float> x({1, 4, 2, 2, 1}), weight({4, 4, 3, 3});
  Array<float> y(x.shape()), mean({1, 4, 1, 1});
  Array<std::uint8_t> places({1, 4, 1, 1, 1});
  const AcceleratorScope scope(&accelerator);
  const auto refused = [](const auto& call, const char* name) {
    const Error error = support::error_of(call);
    CHECK(error.code == ErrorCode::unsupported);
    CHECK(support::holds(error.what(), {name, "a thread without an accelerator"}));
  };
  refused([&] { convolution<float>(x, weight, {}, {}, false, y.view()); }, "convolution");
  refused([&] { average_pool<float>(x, mean.view()); }, "average_pool");
}
