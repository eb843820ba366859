/// Pooling of images.

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "../instantiation.hpp"
#include "../shape_guard.hpp"
#include "convolution.hpp"
#include "expect.hpp"
#include "images.hpp"
#include "widened.hpp"

namespace baton::transformer {
namespace ops {
namespace {

/// The arguments that forward and backward share.
template <class T>
void expect_max_pool(std::string_view what, View<const T> x, View<const T> y,
                     View<const std::uint8_t> places) {
  const auto name = [&](const char* view) { return fmt::format("{}: {}", what, view); };
  expect_images(name("x"), x.shape());
  expect_shape(name("y"), y.shape(), x.shape().with(2, x.extent(2) / 2).with(3, x.extent(3) / 2));
  expect_shape(name("places"), places.shape(), y.shape());
  expect_contiguous(what, x, y, places);
  expect_host(what);
}

/// Calls body(first index of y, first indexes of x's four pixels) for the b channels of each place.
template <class Body>
void each_place(const Shape& x, const Body& body) {
  const std::int64_t h = x[2], w = x[3], b = x[4];
  std::int64_t to = 0;
  for (std::int64_t plane = 0; plane < x[0] * x[1]; ++plane) {
    for (std::int64_t row = 0; row + 2 <= h; row += 2) {
      std::int64_t above = (plane * h + row) * w * b;
      for (std::int64_t column = 0; column + 2 <= w; column += 2, above += 2 * b, to += b) {
        const std::int64_t below = above + w * b;
        body(to, std::array{above, above + b, below, below + b});
      }
    }
  }
}

/// Calls body(b). In the fast orders of channels, b is a constant, so that compilers make loops
/// over it straight.
template <class Body>
void with_channels(std::int64_t b, const Body& body) {
  if (b == 16) {
    body(std::integral_constant<std::int64_t, 16>());
  } else if (b == 8) {
    body(std::integral_constant<std::int64_t, 8>());
  } else {
    body(b);
  }
}

template <class T>
void max_pool(View<const T> x, View<T> y, View<std::uint8_t> places) {
  with_channels(x.extent(4), [&](auto b) {
    const T* const from = x.data();
    T* const largest = y.data();
    std::uint8_t* const place = places.data();
    each_place(x.shape(), [=](std::int64_t to, const std::array<std::int64_t, 4>& at) {
      for (std::int64_t k = 0; k < b; ++k) {
        T most = from[at[0] + k];
        std::uint8_t found = 0;
        for (std::uint8_t i = 1; i < 4; ++i) {
          const T value = from[at[i] + k];
          const bool larger = value > most || value != value;
          most = larger ? value : most;
          found = larger ? i : found;
        }
        largest[to + k] = most;
        place[to + k] = found;
      }
    });
  });
}

template <class T>
void max_pool_backward(View<const T> dy, View<const std::uint8_t> places, View<T> dx) {
  const T* const from = dy.data();
  const std::uint8_t* const place = places.data();
  T* const gradients = dx.data();
  if (dx.extent(2) % 2 != 0 || dx.extent(3) % 2 != 0) std::fill_n(gradients, dx.size(), T(0));
  with_channels(dx.extent(4), [=, x = dx.shape()](auto b) {
    each_place(x, [=](std::int64_t to, const std::array<std::int64_t, 4>& at) {
      for (std::uint8_t i = 0; i < 4; ++i)
        for (std::int64_t k = 0; k < b; ++k)
          gradients[at[i] + k] = place[to + k] == i ? from[to + k] : T(0);
    });
  });
}

/// The arguments that forward and backward share.
template <class T>
void expect_average_pool(std::string_view what, View<const T> x, View<const T> y) {
  const auto name = [&](const char* view) { return fmt::format("{}: {}", what, view); };
  expect_images(name("x"), x.shape());
  expect_shape(name("y"), y.shape(), {x.extent(0), channels_of(x.shape()), any, any});
  expect_contiguous(what, x, y);
  expect_host(what);
}

/// Calls body(a part of y, the part of x that is averaged to it, 1 / its pixels).
template <class X, class Y, class Body>
void each_part(View<X> x, View<Y> y, const Body& body) {
  const auto range = [](std::int64_t part, std::int64_t parts, std::int64_t pixels) {
    return std::pair{part * pixels / parts, ((part + 1) * pixels + parts - 1) / parts};
  };
  for (std::int64_t n = 0; n < y.extent(0); ++n) {
    for (std::int64_t c = 0; c < y.extent(1); ++c) {
      const View<X> channel = channel_of(x, n, c);
      const View<Y> parts = y.select(0, n).select(0, c);
      for (std::int64_t i = 0; i < parts.extent(0); ++i) {
        const auto rows = range(i, parts.extent(0), channel.extent(0));
        for (std::int64_t j = 0; j < parts.extent(1); ++j) {
          const auto columns = range(j, parts.extent(1), channel.extent(1));
          const View<X> part(&channel(rows.first, columns.first),
                             {rows.second - rows.first, columns.second - columns.first},
                             {channel.stride(0), channel.stride(1)});
          body(parts(i, j), part, 1 / static_cast<std::remove_const_t<Y>>(part.size()));
        }
      }
    }
  }
}

}  // namespace
}  // namespace ops

template <Real T>
void max_pool(View<const std::type_identity_t<T>> x, View<T> y, View<std::uint8_t> places) {
  ops::expect_max_pool<T>("max_pool", x, y, places);
  ops::widened([&](auto x, auto y) { ops::max_pool<Wide<T>>(x, y, places); }, x, y);
}

template <Real T>
void max_pool_backward(View<const std::type_identity_t<T>> dy, View<const std::uint8_t> places,
                       View<T> dx) {
  ops::expect_max_pool<T>("max_pool_backward", dx, dy, places);
  ops::widened([&](auto dy, auto dx) { ops::max_pool_backward<Wide<T>>(dy, places, dx); }, dy, dx);
}

template <Real T>
void average_pool(View<const std::type_identity_t<T>> x, View<T> y) {
  ops::expect_average_pool<T>("average_pool", x, y);
  ops::widened(
      [](auto x, auto y) {
        ops::each_part(x, y, [](auto& mean, const auto& part, auto share) {
          Wide<T> sum = 0;
          ops::each_pixel(part, [&](auto pixel) { sum += pixel; });
          mean = sum * share;
        });
      },
      x, y);
}

template <Real T>
void average_pool_backward(View<const std::type_identity_t<T>> dy, View<T> dx) {
  ops::expect_average_pool<T>("average_pool_backward", dx, dy);
  ops::widened(
      [](auto dy, auto dx) {
        std::fill_n(dx.data(), dx.size(), Wide<T>(0));
        ops::each_part(dx, dy, [](auto gradient, const auto& part, auto share) {
          ops::each_pixel(part, [&](auto& pixel) { pixel += gradient * share; });
        });
      },
      dy, dx);
}

#define BATON_INSTANTIATE(T)                                                                   \
  template BATON_INSTANTIATION void max_pool(View<const T>, View<T>, View<std::uint8_t>);      \
  template BATON_INSTANTIATION void max_pool_backward(View<const T>, View<const std::uint8_t>, \
                                                      View<T>);                                \
  template BATON_INSTANTIATION void average_pool(View<const T>, View<T>);                      \
  template BATON_INSTANTIATION void average_pool_backward(View<const T>, View<T>);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
