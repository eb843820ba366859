#pragma once
/// Counter-based random numbers: a value depends on its key and its position only, so every layout
/// of a tensor over ranks draws the same.

#include <array>
#include <cstdint>
#include <string_view>

#include "baton/export.hpp"
#include "tensor.hpp"

namespace BATON_API baton {
namespace transformer {

/// Philox 4x32 with 10 rounds: four random words of a counter and a key. Salmon, Moraes, Dror,
/// Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

/// A sequence of random numbers, indexed by position.
struct Random {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  ///< distinguishes parameters, layers, steps

  std::uint32_t word(std::uint64_t position) const;
  double uniform(std::uint64_t position) const;  ///< within (0, 1)
  double normal(std::uint64_t position) const;   ///< mean 0, variance 1
  /// A sequence of its own for everything that differs in `part`.
  Random of(std::uint64_t part) const;
  Random of(std::string_view name) const;
};

/// Where a piece lies in a whole tensor: the whole's shape, and the piece's first index in each
/// dimension.
struct Piece {
  Shape whole;
  std::array<std::int64_t, Shape::max_rank> first{};
};

/// Elements of `view`, a piece of a whole, drawn by their positions in the whole.
template <Real T>
void fill_uniform(View<T> view, const Random& random, double low, double high, const Piece& piece);
template <Real T>
void fill_normal(View<T> view, const Random& random, double deviation, const Piece& piece);
/// The whole itself.
template <Real T>
void fill_uniform(View<T> view, const Random& random, double low, double high) {
  fill_uniform(view, random, low, high, {view.shape()});
}
template <Real T>
void fill_normal(View<T> view, const Random& random, double deviation) {
  fill_normal(view, random, deviation, {view.shape()});
}

/// Zeroes elements with probability p, and scales the others by 1/(1 - p). Which ones depends on
/// the random sequence and on the element's place in the whole. Its own derivative.
struct Dropout {
  double p = 0;  ///< within [0, 1); 0: nothing happens
  Random random;
  Piece piece;

  template <Real T>
  void apply(View<T> x) const;
};

}  // namespace transformer
}  // namespace baton
