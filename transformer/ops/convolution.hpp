#pragma once
/// Convolution and pooling of images on one rank, each with its derivatives. All views are
/// contiguous. If shapes do not fit, functions throw Error(invalid_argument) that names both. They
/// run on the host, which computes bf16 in f32 and rounds the results; if the thread has an
/// accelerator, they throw Error(unsupported).
///
/// Images are [n, g, h, w, b]: n images of h rows, w columns and g · b channels, of which b lie
/// side by side. Channel c is the elements (.., c / b, .., .., c % b). With b = 1 this is the plain
/// order [n, c, h, w], with g = 1 [n, h, w, c]. Operands of one function may have different b.

#include <cstdint>

#include "ops.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// A square window that moves over an image with zeros around it.
struct Window {
  std::int64_t size = 3, stride = 1, padding = 1;  ///< in pixels

  /// The number of its places along `pixels`.
  std::int64_t places(std::int64_t pixels) const {
    return (pixels + 2 * padding - size) / stride + 1;
  }
};

/// The b that makes convolution() fastest on this processor, for images whose numbers of channels
/// are multiples of `channels`. It divides `channels`. Images of 3 channels are fast with b = 1.
template <Real T>
std::int64_t channel_block(std::int64_t channels);

/// y [n, .., h', w', ..] = the sum over the window and the channels of x · weight [outputs,
/// channels, size, size], + bias [outputs], which may be an empty view. With `relu`, negative
/// results become 0. h' and w' are window.places() of h and w.
template <Real T>
void convolution(View<const std::type_identity_t<T>> x, View<const std::type_identity_t<T>> weight,
                 View<const std::type_identity_t<T>> bias, const Window& window, bool relu,
                 View<T> y, const Meanwhile& meanwhile = {});
/// dx = the gradient by x, without `relu`: dy is the gradient before it. Calls `meanwhile`, if
/// there is one, after each few images, as the others do.
template <Real T>
void convolution_backward_input(View<const std::type_identity_t<T>> dy,
                                View<const std::type_identity_t<T>> weight, const Window& window,
                                View<T> dx, const Meanwhile& meanwhile = {});
/// Adds the gradients by weight and bias to dweight and dbias, which may be empty.
template <Real T>
void convolution_backward_weight(View<const std::type_identity_t<T>> x,
                                 View<const std::type_identity_t<T>> dy, const Window& window,
                                 View<T> dweight, View<T> dbias, const Meanwhile& meanwhile = {});

/// y [n, g, h / 2, w / 2, b] = the largest of each 2 x 2 pixels of x [n, g, h, w, b]. A last odd
/// row or column is left out. places, shaped like y, = which of the four it is, row by row; of
/// equal ones, the first. NaN is larger than any number.
template <Real T>
void max_pool(View<const std::type_identity_t<T>> x, View<T> y, View<std::uint8_t> places);
/// dx = dy at the places of the largest, 0 elsewhere.
template <Real T>
void max_pool_backward(View<const std::type_identity_t<T>> dy, View<const std::uint8_t> places,
                       View<T> dx);

/// y [n, channels, h', w'], in plain order, = means over parts of x [n, g, h, w, b]: part i of h'
/// is the rows from floor(i · h / h') to ceil((i + 1) · h / h'), and likewise of columns, as
/// torch.nn.AdaptiveAvgPool2d has them. More parts than pixels repeat pixels.
template <Real T>
void average_pool(View<const std::type_identity_t<T>> x, View<T> y);
/// dx [n, g, h, w, b] = the gradient by x.
template <Real T>
void average_pool_backward(View<const std::type_identity_t<T>> dy, View<T> dx);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
