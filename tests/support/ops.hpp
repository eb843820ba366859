#pragma once
/// Users' operations for tests.

#include <cstddef>
#include <cstdint>

#include "baton/memory.hpp"
#include "baton/types.hpp"

namespace support {

/// x -> scale * x + shift modulo 2^32, in one element; composition from left to right is
/// associative and does not commute.
struct Affine {
  std::uint32_t scale, shift;
  static Affine of(std::uint64_t packed) {
    return {static_cast<std::uint32_t>(packed >> 32), static_cast<std::uint32_t>(packed)};
  }
  std::uint64_t packed() const { return static_cast<std::uint64_t>(scale) << 32 | shift; }
  friend Affine then(Affine first, Affine second) {
    return {second.scale * first.scale, second.scale * first.shift + second.shift};
  }
};

/// 2 × 2 matrices of 16-bit integers modulo 2^16, in one element; their product.
inline std::uint64_t matrix_product(std::uint64_t a, std::uint64_t b) {
  const auto at = [](std::uint64_t m, int row, int column) {
    return static_cast<std::uint32_t>(m >> (16 * (2 * row + column)) & 0xffff);
  };
  std::uint64_t product = 0;
  for (int row = 0; row < 2; ++row) {
    for (int column = 0; column < 2; ++column) {
      const std::uint32_t entry =
          at(a, row, 0) * at(b, 0, column) + at(a, row, 1) * at(b, 1, column);
      product |= static_cast<std::uint64_t>(entry & 0xffff) << (16 * (2 * row + column));
    }
  }
  return product;
}

template <std::uint64_t (*combine)(std::uint64_t, std::uint64_t)>
void fold_each(void* into, const void* left, const void* right, std::size_t count, void*) {
  const auto* a = static_cast<const std::uint64_t*>(left);
  const auto* b = static_cast<const std::uint64_t*>(right);
  auto* out = static_cast<std::uint64_t*>(into);
  for (std::size_t i = 0; i < count; ++i) out[i] = combine(a[i], b[i]);
}

inline std::uint64_t composed(std::uint64_t left, std::uint64_t right) {
  return then(Affine::of(left), Affine::of(right)).packed();
}
inline std::uint64_t multiplied_modulo(std::uint64_t left, std::uint64_t right) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide(left) * right % 0xffffffffffffffc5u);
}

inline const baton::Op affine_maps =
    baton::Op::user(fold_each<composed>, nullptr, false, "affine maps");
inline const baton::Op matrices =
    baton::Op::user(fold_each<matrix_product>, nullptr, false, "matrices");
/// Commutes.
inline const baton::Op modular_product =
    baton::Op::user(fold_each<multiplied_modulo>, nullptr, true, "product modulo a prime");

/// A built-in operation with one given instruction set, as a user's operation: ranks of one
/// communicator can differ.
struct AtLevel {
  baton::FoldFunction fold;
  AtLevel(baton::OpKind kind, baton::Datatype type, int level)
      : fold(baton::host::fold(kind, type, level)) {}
  baton::Op op(bool commutative = true) {
    return baton::Op::user(
        [](void* into, const void* left, const void* right, std::size_t count, void* self) {
          static_cast<AtLevel*>(self)->fold(into, left, right, count);
        },
        this, commutative, "at level");
  }
};

}  // namespace support
