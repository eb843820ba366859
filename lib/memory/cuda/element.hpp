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

template <OpKind op, class T, std::uint32_t width>
BATON_DEVICE Vector<width> combine(const Vector<width>& left, const Vector<width>& right) {
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
