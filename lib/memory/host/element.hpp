#pragma once
/// The numerics contract for one element, in plain C++: what every instruction set must reproduce.

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "baton/memory.hpp"
#include "baton/types.hpp"

namespace baton::host {

template <class T>
concept Float8 = std::same_as<T, f8e4m3> || std::same_as<T, f8e5m2>;
/// Floats that fold in fp32.
template <class T>
concept NarrowFloat = Float8<T> || std::same_as<T, f16> || std::same_as<T, bf16>;

/// Element `index` of memory that need not be aligned.
template <class T>
T load(const void* base, std::size_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(base) + index * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void store(void* base, std::size_t index, T value) {
  std::memcpy(static_cast<std::byte*>(base) + index * sizeof(T), &value, sizeof(T));
}

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
  /// What exceeds the largest number becomes `overflow`; no code from here on is a number.
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
constexpr T canonical(T value) {
  return value == value ? value : std::numeric_limits<T>::quiet_NaN();
}

constexpr float widen(bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

template <NarrowFloat T>
constexpr float widen(T value) {
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
constexpr T narrow(float value) {
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

/// left (+) right. avg folds as sum.
template <OpKind op, class T>
constexpr T combine(T left, T right) {
  if constexpr (NarrowFloat<T>) {
    return narrow<T>(combine<op>(widen(left), widen(right)));
  } else if constexpr (op == OpKind::min || op == OpKind::max) {
    if constexpr (std::floating_point<T>) {
      if (left != left || right != right) return std::numeric_limits<T>::quiet_NaN();
    }
    const bool take_right = op == OpKind::min ? right < left : left < right;
    return take_right ? right : left;
  } else if constexpr (std::floating_point<T>) {
    static_assert(op == OpKind::sum || op == OpKind::prod);
    return canonical(op == OpKind::sum ? left + right : left * right);
  } else {
    using Unsigned = std::make_unsigned_t<T>;  // wraps around
    const auto l = static_cast<Unsigned>(left), r = static_cast<Unsigned>(right);
    Unsigned result{};
    if constexpr (op == OpKind::sum) result = static_cast<Unsigned>(l + r);
    if constexpr (op == OpKind::prod) result = static_cast<Unsigned>(l * r);
    if constexpr (op == OpKind::logical_and) result = l != 0 && r != 0;
    if constexpr (op == OpKind::logical_or) result = l != 0 || r != 0;
    if constexpr (op == OpKind::logical_xor) result = (l != 0) != (r != 0);
    if constexpr (op == OpKind::bit_and) result = l & r;
    if constexpr (op == OpKind::bit_or) result = l | r;
    if constexpr (op == OpKind::bit_xor) result = l ^ r;
    return static_cast<T>(result);
  }
}

/// value / ranks, as avg ends. `ranks` is at least 1.
template <class T>
constexpr T divide(T value, int ranks) {
  if constexpr (NarrowFloat<T>) {
    return narrow<T>(divide(widen(value), ranks));
  } else if constexpr (std::floating_point<T>) {
    return canonical(value / static_cast<T>(ranks));
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(value / ranks);
  } else {
    return static_cast<T>(value / static_cast<unsigned>(ranks));
  }
}

/// One plain loop of combine().
template <OpKind op, class T>
void fold_elements(void* into, const void* left, const void* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    store(into, i, combine<op>(load<T>(left, i), load<T>(right, i)));
}

/// One plain loop of divide().
template <class T>
void divide_elements(void* data, std::size_t count, int ranks) {
  for (std::size_t i = 0; i < count; ++i) store(data, i, divide(load<T>(data, i), ranks));
}

/// Kernel<op, T>::fold for an operation known at run time; null where it is not defined on T.
template <template <OpKind, class> class Kernel, class T>
FoldFunction select(OpKind op) {
  switch (op) {
    case OpKind::sum:
    case OpKind::avg:
      return &Kernel<OpKind::sum, T>::fold;
    case OpKind::prod:
      return &Kernel<OpKind::prod, T>::fold;
    case OpKind::min:
      return &Kernel<OpKind::min, T>::fold;
    case OpKind::max:
      return &Kernel<OpKind::max, T>::fold;
    default:
      break;
  }
  if constexpr (std::integral<T>) {
    switch (op) {
      case OpKind::logical_and:
        return &Kernel<OpKind::logical_and, T>::fold;
      case OpKind::logical_or:
        return &Kernel<OpKind::logical_or, T>::fold;
      case OpKind::logical_xor:
        return &Kernel<OpKind::logical_xor, T>::fold;
      case OpKind::bit_and:
        return &Kernel<OpKind::bit_and, T>::fold;
      case OpKind::bit_or:
        return &Kernel<OpKind::bit_or, T>::fold;
      case OpKind::bit_xor:
        return &Kernel<OpKind::bit_xor, T>::fold;
      default:
        break;
    }
  }
  return nullptr;
}

}  // namespace baton::host
