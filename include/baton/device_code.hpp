#pragma once
/// For kernels of your own, on the host and on CUDA devices: conversions of 8- and 16-bit floats,
/// inline. They give the bits that the numerics contract (lib/memory/README.md) demands, on both.

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>

#include "baton/types.hpp"

/// Marks a function that runs on devices, where nvcc compiles it, and on the host.
#ifdef __CUDACC__
#define BATON_DEVICE __host__ __device__ __forceinline__
#define BATON_UNROLL _Pragma("unroll")
#define BATON_PRAGMA(words) _Pragma(#words)
#define BATON_UNROLL_BY(times) BATON_PRAGMA(unroll times)
#else
#define BATON_DEVICE inline
#define BATON_UNROLL
#define BATON_UNROLL_BY(times)
#endif

namespace baton::floats {

template <class T>
concept Float8 = std::same_as<T, f8e4m3> || std::same_as<T, f8e5m2>;
/// Floats that fold in fp32.
template <class T>
concept NarrowFloat = Float8<T> || std::same_as<T, f16> || std::same_as<T, bf16>;

/// Floating-point formats as fp32 bit patterns, shared with the vector kernels.
namespace bits {

inline constexpr std::uint32_t sign = 0x80000000, infinity = 0x7f800000, nan = 0x7fc00000;

/// A format with fewer exponent bits than fp32. Codes are bit patterns without the sign.
template <int fraction_bits, int bias, std::uint32_t overflow_code, std::uint32_t nan_code>
struct Format {
  /// Bits of fraction that fp32 has besides.
  static constexpr int shift = 23 - fraction_bits;
  /// Difference of the exponent biases, and the smallest normal number, in fp32's exponent field.
  static constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - bias) << 23;
  static constexpr std::uint32_t min_normal = rebias + (1u << 23);
  /// The power of two whose last place in fp32 is the smallest number: adding it rounds a subnormal
  /// number.
  static constexpr std::uint32_t subnormal_round =
      rebias + (static_cast<std::uint32_t>(shift + 1) << 23);
  /// Values above the largest number become `overflow`; no code from here on is a number.
  static constexpr std::uint32_t overflow = overflow_code;
  static constexpr std::uint32_t nan = nan_code;
};

template <class T>
struct FormatOf;
template <>
struct FormatOf<f8e4m3> : Format<3, 7, 0x7f, 0x7f> {};
template <>
struct FormatOf<f8e5m2> : Format<2, 15, 0x7c, 0x7e> {};
template <>
struct FormatOf<f16> : Format<10, 15, 0x7c00, 0x7e00> {};

}  // namespace bits

/// `value`, or the canonical quiet NaN if it is any NaN.
template <std::floating_point T>
BATON_DEVICE constexpr T canonical(T value) {
  return value == value ? value : std::numeric_limits<T>::quiet_NaN();
}

/// Exact.
BATON_DEVICE constexpr float widen(bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

/// Exact.
template <NarrowFloat T>
BATON_DEVICE constexpr float widen(T value) {
#ifdef __CUDA_ARCH__
  if constexpr (std::same_as<T, f16>) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
    return wide;
  }
#endif
  using Format = bits::FormatOf<T>;
  constexpr int unused = 32 - 8 * static_cast<int>(sizeof(T));
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits) << unused & bits::sign;
  const std::uint32_t code = value.bits & (bits::sign - 1) >> unused;
  const std::uint32_t magnitude = code << Format::shift;  // exponent in place, bias not
  std::uint32_t wide = magnitude + Format::rebias;
  if (code >= Format::overflow) {
    wide |= bits::infinity;  // or NaN, where there is a fraction
  } else if (wide < Format::min_normal) {
    // Subnormal: read as the smallest normal number + value, which fp32 holds exactly.
    wide = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude + Format::min_normal) -
                                        std::bit_cast<float>(Format::min_normal));
  }
  return std::bit_cast<float>(wide | sign);
}

/// Rounded to nearest even; NaN becomes the canonical one.
template <NarrowFloat T>
BATON_DEVICE constexpr T narrow(float value) {
#ifdef __CUDA_ARCH__
  // The device's own NaN is another one.
  if constexpr (std::same_as<T, f16>) {
    std::uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return {value == value ? bits : std::uint16_t{0x7e00}};
  } else if constexpr (std::same_as<T, bf16>) {
    std::uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return {value == value ? bits : std::uint16_t{0x7fc0}};
  }
#endif
  const std::uint32_t wide = std::bit_cast<std::uint32_t>(canonical(value));
  if constexpr (std::same_as<T, bf16>) {
    // Adds half of the last place, less one unit where that leaves a tie at an even value.
    return {static_cast<std::uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16)};
  } else {
    using Format = bits::FormatOf<T>;
    using Bits = decltype(T::bits);
    const std::uint32_t magnitude = wide & ~bits::sign;
    if (magnitude > bits::infinity) return {static_cast<Bits>(Format::nan)};
    std::uint32_t code;
    if (magnitude < Format::min_normal) {
      code = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) +
                                          std::bit_cast<float>(Format::subnormal_round)) -
             Format::subnormal_round;
    } else {
      constexpr std::uint32_t below_half = (1u << (Format::shift - 1)) - 1;
      const std::uint32_t odd = magnitude >> Format::shift & 1;
      code = (magnitude - Format::rebias + below_half + odd) >> Format::shift;
      if (code > Format::overflow) code = Format::overflow;
    }
    // An overflow to NaN has no sign.
    if (code < Format::nan) code |= (wide & bits::sign) >> (32 - 8 * sizeof(T));
    return {static_cast<Bits>(code)};
  }
}

}  // namespace baton::floats
