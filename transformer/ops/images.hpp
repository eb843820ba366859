#pragma once
/// Images [n, g, h, w, b] as convolution.hpp declares them: their sizes, and views of one channel.

#include <algorithm>
#include <string_view>

#include "convolution.hpp"

namespace baton::transformer::ops {

/// Throws Error(invalid_argument) that names `what` unless the shape is one of images.
void expect_images(std::string_view what, const Shape& shape);
/// Throws Error(unsupported) that names `what` if the thread has an accelerator.
void expect_host(std::string_view what);

inline std::int64_t channels_of(const Shape& images) { return images[1] * images[4]; }

/// [h, w]: a channel of image number n.
template <class T>
View<T> channel_of(const View<T>& images, std::int64_t n, std::int64_t channel) {
  const std::int64_t b = images.extent(4);
  return images.select(0, n).select(0, channel / b).select(2, channel % b);
}

/// Calls body(pixel) for the pixels of [h, w].
template <class T, class Body>
void each_pixel(const View<T>& channel, const Body& body) {
  for (std::int64_t row = 0; row < channel.extent(0); ++row)
    for (std::int64_t column = 0; column < channel.extent(1); ++column) body(channel(row, column));
}

/// Calls body(begin, end) for all n images [n, .., h, w, ..]: at once, or if there is `meanwhile`,
/// a few at a time, and `meanwhile` after each.
template <class Body>
void in_slices(const Shape& images, const Meanwhile& meanwhile, const Body& body) {
  constexpr std::int64_t pixels_at_once = 4096;
  const std::int64_t n = images[0];
  if (!meanwhile) return body(std::int64_t{0}, n);
  const std::int64_t pixels = std::max<std::int64_t>(images[2] * images[3], 1);
  const std::int64_t each = std::max<std::int64_t>(pixels_at_once / pixels, 1);
  for (std::int64_t begin = 0; begin < n; begin += each) {
    body(begin, std::min(begin + each, n));
    meanwhile();
  }
}

#ifdef BATON_HAS_ONEDNN
/// The functions of convolution.hpp by oneDNN, given shapes that fit.
namespace onednn {

std::int64_t channel_block(std::int64_t channels);
void convolution(View<const float> x, View<const float> weight, View<const float> bias,
                 const Window& window, bool relu, View<float> y, const Meanwhile& meanwhile);
void convolution_backward_input(View<const float> dy, View<const float> weight,
                                const Window& window, View<float> dx, const Meanwhile& meanwhile);
void convolution_backward_weight(View<const float> x, View<const float> dy, const Window& window,
                                 View<float> dweight, View<float> dbias,
                                 const Meanwhile& meanwhile);

}  // namespace onednn
#endif

}  // namespace baton::transformer::ops
