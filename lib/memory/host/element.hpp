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
concept Half = std::same_as<T, f16> || std::same_as<T, bf16>;

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
/// Difference of the exponent biases of fp32 and f16 (127 - 15), and the exponent of 2^-14, the
/// smallest normal f16, both in fp32's exponent field.
inline constexpr std::uint32_t f16_rebias = 112u << 23, f16_min_normal = 113u << 23;
/// 2^16: magnitudes from here on are infinite as f16.
inline constexpr std::uint32_t f16_infinity = 143u << 23;
/// 0.5, whose last place is 2^-24, the smallest f16: adding it rounds a subnormal f16.
inline constexpr std::uint32_t f16_subnormal_round = 126u << 23;
}  // namespace bits

/// `value`, or the canonical quiet NaN if it is any NaN.
template <std::floating_point T>
constexpr T canonical(T value) {
  return value == value ? value : std::numeric_limits<T>::quiet_NaN();
}

constexpr float widen(bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

constexpr float widen(f16 value) {
  const std::uint32_t sign = (value.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = (value.bits & 0x7fffu) << 13;  // exponent in place, bias not
  std::uint32_t wide = magnitude + bits::f16_rebias;
  if (magnitude >= 0x7c00u << 13) {
    wide += bits::f16_rebias;  // infinity and NaN
  } else if (magnitude < 0x0400u << 13) {
    // Subnormal: read as 2^-14 + value, which fp32 holds exactly.
    wide = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude + bits::f16_min_normal) -
                                        std::bit_cast<float>(bits::f16_min_normal));
  }
  return std::bit_cast<float>(wide | sign);
}

/// Rounded to nearest even; NaN becomes the canonical one.
template <Half T>
constexpr T narrow(float value) {
  const std::uint32_t wide = std::bit_cast<std::uint32_t>(canonical(value));
  if constexpr (std::same_as<T, bf16>) {
    // Adds half of the last place, less one unit where that leaves a tie at an even value.
    return {static_cast<std::uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16)};
  } else {
    const std::uint32_t magnitude = wide & ~bits::sign;
    std::uint32_t half;
    if (magnitude >= bits::f16_infinity) {
      half = magnitude > bits::infinity ? 0x7e00 : 0x7c00;
    } else if (magnitude < bits::f16_min_normal) {
      half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) +
                                          std::bit_cast<float>(bits::f16_subnormal_round)) -
             bits::f16_subnormal_round;
    } else {
      half = (magnitude - bits::f16_rebias + 0xfff + (magnitude >> 13 & 1)) >> 13;
    }
    return {static_cast<std::uint16_t>(half | (wide & bits::sign) >> 16)};
  }
}

/// left (+) right. avg folds as sum.
template <OpKind op, class T>
constexpr T combine(T left, T right) {
  if constexpr (Half<T>) {
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
  if constexpr (Half<T>) {
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
