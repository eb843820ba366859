#pragma once
/// The numerics contract for one vector, on host and device; equal to the host's element.hpp for
/// each element.

#include <bit>
#include <type_traits>

#include "../host/element.hpp"
#include "strided.hpp"

namespace baton::cuda {

// --- vectors -----------------------------------------------------------------------------------

/// `width` bytes, loaded and stored at once.
template <std::uint32_t width>
struct alignas(width) Vector {
  std::uint32_t words[width / 4];
};
template <>
struct Vector<2> {
  std::uint16_t half;
};
template <>
struct Vector<1> {
  std::uint8_t byte;
};

template <class T, std::uint32_t width>
struct Lanes {
  T lane[width / sizeof(T)];
};

constexpr bool bitwise(OpKind op) {
  return op == OpKind::bit_and || op == OpKind::bit_or || op == OpKind::bit_xor;
}

/// The type whose kernel serves T. Only min and max of integers depend on the sign; bitwise ops do
/// not depend on the size.
template <OpKind op, class T>
struct ServedBy {
  using type = T;
};
template <OpKind op, std::integral T>
requires(op != OpKind::min && op != OpKind::max) struct ServedBy<op, T> {
  using type = std::conditional_t<bitwise(op), std::uint8_t, std::make_unsigned_t<T>>;
};
template <OpKind op, class T>
using Served = typename ServedBy<op, T>::type;

/// The element type of a vector in a kernel. Bitwise ops use whole words.
template <OpKind op, class T, std::uint32_t width>
using Lane = std::conditional_t<bitwise(op) && width >= 4, std::uint32_t, T>;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
/// 8-bit floats two at a time, by instructions of sm_89 and later. `pair`: the first in the low
/// byte.
template <OpKind op, floats::Float8 T>
__device__ __forceinline__ std::uint16_t combine_pair(std::uint16_t left, std::uint16_t right) {
  constexpr bool wide_fraction = std::same_as<T, f8e4m3>;
  const auto widen = [](std::uint16_t pair, float& first, float& second) {
    std::uint32_t halves;
    if constexpr (wide_fraction) {
      asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
    } else {
      asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(pair));
    }
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, "
        "high; }"
        : "=f"(first), "=f"(second)
        : "r"(halves));
  };
  const auto combined = [](float l, float r) {
    if constexpr (op == OpKind::sum) return l + r;
    if constexpr (op == OpKind::prod) return l * r;
    return host::combine<op>(l, r);
  };
  float l[2], r[2], x[2];
  widen(left, l[0], l[1]), widen(right, r[0], r[1]);
  x[0] = combined(l[0], r[0]), x[1] = combined(l[1], r[1]);
  // The instruction gives the largest number for what is beyond, and a NaN of its own.
  std::uint16_t pair;
  if constexpr (wide_fraction) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(x[1]), "f"(x[0]));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(x[1]), "f"(x[0]));
  }
  using Format = host::bits::FormatOf<T>;
  std::uint32_t codes = pair;
  BATON_UNROLL
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::uint32_t code = 0xffu << 8 * i;
    const float size = fabsf(x[i]);
    if constexpr (wide_fraction) {  // from 464 on, values round to what is beyond 448
      codes = size <= 464 ? codes : (codes & ~code) | std::uint32_t{Format::nan} << 8 * i;
    } else {  // from 61440 on, beyond 57344
      codes = size < 61440 ? codes : codes + (1u << 8 * i);
      codes = size == size ? codes : (codes & ~code) | std::uint32_t{Format::nan} << 8 * i;
    }
  }
  return static_cast<std::uint16_t>(codes);
}
#endif

template <OpKind op, class T, std::uint32_t width>
BATON_DEVICE Vector<width> combine(const Vector<width>& left, const Vector<width>& right) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  if constexpr (floats::Float8<T> && width >= 2) {
    using Pairs = Lanes<std::uint16_t, width>;
    const auto l = std::bit_cast<Pairs>(left), r = std::bit_cast<Pairs>(right);
    Pairs result;
    BATON_UNROLL
    for (std::uint32_t i = 0; i < width / 2; ++i)
      result.lane[i] = combine_pair<op, T>(l.lane[i], r.lane[i]);
    return std::bit_cast<Vector<width>>(result);
  }
#endif
  using As = Lanes<Lane<op, T, width>, width>;
  const auto l = std::bit_cast<As>(left), r = std::bit_cast<As>(right);
  As result;
  BATON_UNROLL
  for (std::uint32_t i = 0; i < sizeof(As) / sizeof(As::lane[0]); ++i)
    result.lane[i] = host::combine<op>(l.lane[i], r.lane[i]);
  return std::bit_cast<Vector<width>>(result);
}

template <class T, std::uint32_t width>
BATON_DEVICE Vector<width> divide(const Vector<width>& value, int ranks) {
  auto lanes = std::bit_cast<Lanes<T, width>>(value);
  BATON_UNROLL
  for (std::uint32_t i = 0; i < width / sizeof(T); ++i)
    lanes.lane[i] = host::divide(lanes.lane[i], ranks);
  return std::bit_cast<Vector<width>>(lanes);
}

}  // namespace baton::cuda
