#pragma once
/// The numerics contract for one element, in plain C++. Every instruction set must reproduce it.

#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "baton/device_code.hpp"
#include "baton/memory.hpp"
#include "baton/types.hpp"

namespace baton::host {

using floats::canonical, floats::Float8, floats::narrow, floats::NarrowFloat, floats::widen;
namespace bits = floats::bits;

/// Element `index`; the memory may be unaligned.
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

/// left (+) right. avg folds as sum.
template <OpKind op, class T>
BATON_DEVICE constexpr T combine(T left, T right) {
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

/// value / ranks, the last step of avg. `ranks` is at least 1.
template <class T>
BATON_DEVICE constexpr T divide(T value, int ranks) {
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

/// A plain loop of combine().
template <OpKind op, class T>
void fold_elements(void* into, const void* left, const void* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    store(into, i, combine<op>(load<T>(left, i), load<T>(right, i)));
}

/// A plain loop of divide().
template <class T>
void divide_elements(void* data, std::size_t count, int ranks) {
  for (std::size_t i = 0; i < count; ++i) store(data, i, divide(load<T>(data, i), ranks));
}

/// Kernel<op, T>::fold for an op chosen at run time; null if it is not defined on T.
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
