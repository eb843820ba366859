#pragma once
/// Operands of f32, and the same in bf16, whose values f32 has exactly: so the functions of
/// transformer/ops on f32 are the reference of both.

#include "transformer/accelerator.hpp"
#include "transformer/compare.hpp"

namespace samples {

using baton::bf16;
using baton::Shape;
using baton::transformer::Array;
using baton::transformer::View;

/// What rounding to T may change, relative to the largest element.
template <class T>
inline constexpr double rounding = sizeof(T) == 4 ? 4e-6 : 0x1p-8;

template <class T>
Array<T> as(const Array<float>& x) {
  auto to = Array<T>::uninitialized(x.shape());
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if constexpr (sizeof(T) == 2) {
      to.data()[i] = baton::to_bf16(x.data()[i]);
    } else {
      to.data()[i] = x.data()[i];
    }
  }
  return to;
}
inline Array<float> widened(const Array<float>& x) { return x; }
inline Array<float> widened(const Array<bf16>& x) {
  auto to = Array<float>::uninitialized(x.shape());
  for (std::int64_t i = 0; i < x.size(); ++i) to.data()[i] = baton::to_float(x.data()[i]);
  return to;
}

/// Within [-1, 1); what bf16 has, too.
inline Array<float> numbers(const Shape& shape, std::uint64_t stream, float scale = 1) {
  Array<float> x = support::random_array<float>(shape, stream);
  for (float& value : x.span()) value = baton::to_float(baton::to_bf16(value * scale));
  return x;
}

}  // namespace samples
