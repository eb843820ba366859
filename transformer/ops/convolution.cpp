/// Convolution: checks of its operands, and the plain loops that say what it is. They compute f64,
/// and f32 where there is no oneDNN.

#include "convolution.hpp"

#include <algorithm>

#include "../accelerator.hpp"
#include "../emulated.hpp"
#include "../instantiation.hpp"
#include "../shape_guard.hpp"
#include "expect.hpp"
#include "images.hpp"
#include "on_host.hpp"
#include "widened.hpp"

namespace baton::transformer {
namespace ops {

void expect_images(std::string_view what, const Shape& shape) {
  expect_shape(what, shape, {any, any, any, any, any});
}

void expect_host(std::string_view what) {
  if (!accelerator()) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: expected a thread without an accelerator, found one", what));
}

namespace reference {
namespace {

/// Pixels `to` of a channel of y, and `from` of a channel of x, that one weight connects: as many
/// of each, in rows.
template <class Y, class X>
struct Pixels {
  View<Y> y;
  View<X> x;
  Window window;

  /// Calls body(pixel of y, pixel of x) for weight (i, j) of the window.
  template <class Body>
  void each(std::int64_t i, std::int64_t j, const Body& body) const {
    const auto [first_row, last_row] = within(i, y.extent(0), x.extent(0));
    const auto [first, last] = within(j, y.extent(1), x.extent(1));
    for (std::int64_t row = first_row; row < last_row; ++row) {
      Y* to = y.data() + row * y.stride(0) + first * y.stride(1);
      X* from = x.data() + (row * window.stride + i - window.padding) * x.stride(0) +
                (first * window.stride + j - window.padding) * x.stride(1);
      const std::int64_t to_step = y.stride(1), from_step = window.stride * x.stride(1);
      for (std::int64_t column = first; column < last; ++column) {
        body(*to, *from);
        to += to_step, from += from_step;
      }
    }
  }

 private:
  /// The places [first, last) along one dimension where index i of the window is within x.
  std::pair<std::int64_t, std::int64_t> within(std::int64_t i, std::int64_t places,
                                               std::int64_t pixels) const {
    const std::int64_t before = window.padding - i;  // places · stride >= before
    const std::int64_t first = before <= 0 ? 0 : (before + window.stride - 1) / window.stride;
    const std::int64_t after = pixels - 1 + before;  // places · stride <= after
    const std::int64_t last = after < 0 ? 0 : std::min(places, after / window.stride + 1);
    return {std::min(first, last), last};
  }
};

/// Calls body(output, input, i, j, pixels) for all weights and images.
template <class Y, class X, class Body>
void each_weight(View<Y> y, View<X> x, const Window& window, const Body& body) {
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t o = 0; o < channels_of(y.shape()); ++o) {
      for (std::int64_t c = 0; c < channels_of(x.shape()); ++c) {
        const Pixels<Y, X> pixels{channel_of(y, n, o), channel_of(x, n, c), window};
        for (std::int64_t i = 0; i < window.size; ++i)
          for (std::int64_t j = 0; j < window.size; ++j) body(o, c, i, j, pixels);
      }
    }
  }
}

template <class T>
void convolution(View<const T> x, View<const T> weight, View<const T> bias, const Window& window,
                 bool relu, View<T> y, const Meanwhile& meanwhile) {
  in_slices(y.shape(), meanwhile, [&](std::int64_t begin, std::int64_t end) {
    const View<T> results = y.slice(0, begin, end);
    const auto each_result = [&](const auto& body) {
      for (std::int64_t n = 0; n < end - begin; ++n)
        for (std::int64_t o = 0; o < weight.extent(0); ++o)
          each_pixel(channel_of(results, n, o), [&](T& pixel) { body(o, pixel); });
    };
    each_result([&](std::int64_t o, T& pixel) { pixel = bias.empty() ? T(0) : bias(o); });
    each_weight(results, x.slice(0, begin, end), window,
                [&](auto o, auto c, auto i, auto j, const auto& pixels) {
                  const T w = weight(o, c, i, j);
                  pixels.each(i, j, [w](T& to, const T& from) { to += w * from; });
                });
    if (relu) each_result([](std::int64_t, T& pixel) { pixel = pixel < 0 ? T(0) : pixel; });
  });
}

template <class T>
void convolution_backward_input(View<const T> dy, View<const T> weight, const Window& window,
                                View<T> dx, const Meanwhile& meanwhile) {
  in_slices(dy.shape(), meanwhile, [&](std::int64_t begin, std::int64_t end) {
    const View<T> gradients = dx.slice(0, begin, end);
    std::fill_n(gradients.data(), gradients.size(), T(0));
    each_weight(dy.slice(0, begin, end), gradients, window,
                [&](auto o, auto c, auto i, auto j, const auto& pixels) {
                  const T w = weight(o, c, i, j);
                  pixels.each(i, j, [w](const T& from, T& to) { to += w * from; });
                });
  });
}

template <class T>
void convolution_backward_weight(View<const T> x, View<const T> dy, const Window& window,
                                 View<T> dweight, View<T> dbias, const Meanwhile& meanwhile) {
  in_slices(dy.shape(), meanwhile, [&](std::int64_t begin, std::int64_t end) {
    const View<const T> gradients = dy.slice(0, begin, end);
    each_weight(gradients, x.slice(0, begin, end), window,
                [&](auto o, auto c, auto i, auto j, const auto& pixels) {
                  T sum = 0;
                  pixels.each(i, j, [&sum](const T& g, const T& value) { sum += g * value; });
                  dweight(o, c, i, j) += sum;
                });
    if (dbias.empty()) return;
    for (std::int64_t n = 0; n < end - begin; ++n) {
      for (std::int64_t o = 0; o < dbias.extent(0); ++o) {
        T sum = 0;
        each_pixel(channel_of(gradients, n, o), [&sum](const T& g) { sum += g; });
        dbias(o) += sum;
      }
    }
  });
}

}  // namespace
}  // namespace reference

namespace {

#ifdef BATON_HAS_ONEDNN
template <class T>
constexpr bool by_onednn = std::is_same_v<T, float>;
#else
template <class T>
constexpr bool by_onednn = false;
namespace onednn = reference;  // is not called
#endif

/// The arguments that all three share.
template <class T>
void expect_convolution(std::string_view what, View<const T> x, View<const T> weight,
                        View<const T> bias, const Window& window, View<const T> y) {
  const auto name = [&](const char* view) { return fmt::format("{}: {}", what, view); };
  if (window.size < 1 || window.stride < 1 || window.padding < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected a window with size and stride of at least 1 and padding "
                            "of at least 0, found size {}, stride {}, padding {}",
                            what, window.size, window.stride, window.padding));
  }
  expect_images(name("x"), x.shape());
  expect_values(name("weight"), weight);
  const std::int64_t h = x.extent(2), w = x.extent(3);
  if (std::min(h, w) + 2 * window.padding < window.size) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected images that a window of {} with padding {} fits in, "
                            "found {}",
                            what, window.size, window.padding, x.shape().text()));
  }
  expect_shape(name("y"), y.shape(), {x.extent(0), any, window.places(h), window.places(w), any});
  expect_shape(name("weight"), weight.shape(),
               {channels_of(y.shape()), channels_of(x.shape()), window.size, window.size});
  if (!bias.empty()) expect_shape(name("bias"), bias.shape(), {weight.extent(0)});
  expect_contiguous(what, x, weight, bias, y);
  expect_host(what);
}

/// Operations of the sums of y [n, .., h, w, ..], which has `weight` [out, in, k, k].
template <class Images, class Weight>
double operations(const Images& y, const Weight& weight) {
  if (weight.size() == 0) return 0;
  return 2 * static_cast<double>(y.size()) * static_cast<double>(weight.size()) /
         static_cast<double>(weight.extent(0));
}

}  // namespace
}  // namespace ops

template <Real T>
std::int64_t channel_block([[maybe_unused]] std::int64_t channels) {
#ifdef BATON_HAS_ONEDNN
  if constexpr (ops::by_onednn<Wide<T>>) return ops::onednn::channel_block(channels);
#endif
  return 1;
}

template <Real T>
void convolution(View<const std::type_identity_t<T>> x, View<const std::type_identity_t<T>> weight,
                 View<const std::type_identity_t<T>> bias, const Window& window, bool relu,
                 View<T> y, const Meanwhile& meanwhile) {
  ops::expect_convolution<T>("convolution", x, weight, bias, window, y);
  if (emulates()) return emulate(ops::operations(y, weight), meanwhile);
  ops::widened(
      [&](auto x, auto weight, auto bias, auto y) {
        if constexpr (ops::by_onednn<Wide<T>>)
          ops::onednn::convolution(x, weight, bias, window, relu, y, meanwhile);
        else
          ops::reference::convolution<Wide<T>>(x, weight, bias, window, relu, y, meanwhile);
      },
      x, weight, bias, y);
}

template <Real T>
void convolution_backward_input(View<const std::type_identity_t<T>> dy,
                                View<const std::type_identity_t<T>> weight, const Window& window,
                                View<T> dx, const Meanwhile& meanwhile) {
  ops::expect_convolution<T>("convolution_backward_input", dx, weight, {}, window, dy);
  if (emulates()) return emulate(ops::operations(dy, weight), meanwhile);
  ops::widened(
      [&](auto dy, auto weight, auto dx) {
        if constexpr (ops::by_onednn<Wide<T>>)
          ops::onednn::convolution_backward_input(dy, weight, window, dx, meanwhile);
        else
          ops::reference::convolution_backward_input<Wide<T>>(dy, weight, window, dx, meanwhile);
      },
      dy, weight, dx);
}

template <Real T>
void convolution_backward_weight(View<const std::type_identity_t<T>> x,
                                 View<const std::type_identity_t<T>> dy, const Window& window,
                                 View<T> dweight, View<T> dbias, const Meanwhile& meanwhile) {
  ops::expect_convolution<T>("convolution_backward_weight", x, dweight, dbias, window, dy);
  if (emulates()) return emulate(ops::operations(dy, dweight), meanwhile);
  ops::widened(
      [&](auto x, auto dy, auto dweight, auto dbias) {
        if constexpr (ops::by_onednn<Wide<T>>)
          ops::onednn::convolution_backward_weight(x, dy, window, dweight, dbias, meanwhile);
        else
          ops::reference::convolution_backward_weight<Wide<T>>(x, dy, window, dweight, dbias,
                                                               meanwhile);
      },
      x, dy, dweight, dbias);
}

#define BATON_INSTANTIATE(T)                                                                     \
  template BATON_INSTANTIATION std::int64_t channel_block<T>(std::int64_t);                      \
  template BATON_INSTANTIATION void convolution(View<const T>, View<const T>, View<const T>,     \
                                                const Window&, bool, View<T>, const Meanwhile&); \
  template BATON_INSTANTIATION void convolution_backward_input(                                  \
      View<const T>, View<const T>, const Window&, View<T>, const Meanwhile&);                   \
  template BATON_INSTANTIATION void convolution_backward_weight(                                 \
      View<const T>, View<const T>, const Window&, View<T>, View<T>, const Meanwhile&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
