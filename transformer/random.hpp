#pragma once
/// Counter-based random numbers: a value depends on its key and its position only, so every layout
/// of a tensor over ranks draws the same.

#include <array>
#include <cstdint>
#include <string_view>

#include "tensor.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Philox 4x32 with 10 rounds: four random words of a counter and a key. Salmon, Moraes, Dror,
/// Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

/// A sequence of random numbers, indexed by position.
struct Random {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  ///< distinguishes parameters, layers, steps

  /// All of 32 bits.
  std::uint32_t word(std::uint64_t position) const;
  double uniform(std::uint64_t position) const;  ///< within (0, 1)
  double normal(std::uint64_t position) const;   ///< mean 0, variance 1
  /// Another sequence for each `part`.
  Random of(std::uint64_t part) const;
  /// Another sequence for each name.
  Random of(std::string_view name) const;
};

/// The place of a piece in a whole tensor: the whole's shape, and the piece's first index in each
/// dimension.
struct Piece {
  Shape whole;
  std::array<std::int64_t, Shape::max_rank> first{};
};

/// Draws the elements of `view`, a piece of a whole, uniformly in (low, high), each by its position
/// in the whole.
template <Real T>
void fill_uniform(View<T> view, const Random& random, double low, double high, const Piece& piece);
/// The same normally, with mean 0 and this standard deviation.
template <Real T>
void fill_normal(View<T> view, const Random& random, double deviation, const Piece& piece);
/// fill_uniform() of a whole.
template <Real T>
void fill_uniform(View<T> view, const Random& random, double low, double high) {
  fill_uniform(view, random, low, high, {view.shape()});
}
/// fill_normal() of a whole.
template <Real T>
void fill_normal(View<T> view, const Random& random, double deviation) {
  fill_normal(view, random, deviation, {view.shape()});
}

/// Zeroes elements with probability p, and scales the others by 1/(1 - p). The random sequence and
/// an element's place in the whole decide whether it becomes zero. Dropout is its own derivative.
struct Dropout {
  double p = 0;  ///< within [0, 1); 0: elements stay as they are
  Random random;
  Piece piece;

  /// Drops elements of `x`, which is `piece`; none where computations are emulated.
  template <Real T>
  void apply(View<T> x) const;
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
