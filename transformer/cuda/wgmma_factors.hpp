#pragma once
/// The factors of a warpgroup's products, 16 elements deep, in tiles in shared memory.

#include "tiles.hpp"

namespace baton::transformer::cuda {

/// Rows of a tile of `rows` rows, from `first` on, each an index of the product; elements 16 · step
/// and on of each.
template <int rows>
struct Across {
  const Chunk* tile;
  int first, step;
  /// Element k of 16 of a row.
  float at(int row, int k) const {
    const int chunk = step * 2 + k / 8, place = first + row;
    return element(tile[slot<8>(chunk / 8 * rows + place / 8 * 8, place % 8, chunk % 8)], k % 8);
  }
  static float element(const Chunk& chunk, int which) {
    float values[chunk_elements<bf16>];
    widen<bf16>(chunk, values);
    return values[which];
  }
};

/// Columns of a tile of `rows` rows, each an index of the product; elements are of rows 16 · step
/// and on.
template <int rows>
struct Down {
  const Chunk* tile;
  int step;
  /// Element k of 16 of a column.
  float at(int column, int k) const {
    const int row = step * 16 + k, chunk = column / 8;
    return Across<rows>::element(tile[slot<8>(chunk / 8 * rows + row / 8 * 8, row % 8, chunk % 8)],
                                 column % 8);
  }
};

}  // namespace baton::transformer::cuda
