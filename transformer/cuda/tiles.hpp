#pragma once
/// Tiles of queries and keys that lie in shared memory, and their products.

#include "element.hpp"
#include "philox.hpp"
#include "team.hpp"

namespace baton::transformer::cuda {

inline constexpr int tile = 64;               ///< queries, and keys
inline constexpr int score_pitch = tile + 4;  ///< floats from row to row of a tile's scores
/// Floats from row to row of a tile of `width` columns: threads that read neighbouring rows meet no
/// bank of shared memory twice.
constexpr int pitch(int width) { return width + 4; }

/// [sample, position, head, size] with contiguous rows of `size`.
template <class T>
struct Heads {
  T* data = nullptr;
  std::int64_t sample = 0, position = 0, head = 0;  ///< strides, in elements
  BATON_DEVICE T* at(std::int64_t s, std::int64_t h, std::int64_t p) const {
    return data + s * sample + h * head + p * position;
  }
};

/// The arguments that forward and backward share. Backward uses dots [samples, heads, queries] as
/// scratch.
template <class T>
struct Attention {
  std::int64_t samples = 0, queries = 0, keys = 0, heads = 0, key_heads = 0;
  int size = 0;  ///< of a head
  float scale = 1;
  bool causal = false;
  bool quads = false;  ///< all rows take them, and `size` is a multiple of 4
  bool drops = false;
  Mask mask;
  std::uint64_t first[4] = {}, whole[4] = {};  ///< dropout's piece
  Heads<const T> q, k, v;
  float* log_sums = nullptr;  ///< [samples, heads, queries]
  Heads<T> out;
  // Of backward:
  Heads<const T> result, dout;             ///< result: forward's out
  const float* result_log_sums = nullptr;  ///< forward's log_sums
  float* dots = nullptr;
  Heads<T> dq, dk, dv;

  BATON_DEVICE std::int64_t row(std::int64_t sample, std::int64_t head, std::int64_t query) const {
    return (sample * heads + head) * queries + query;
  }
  BATON_DEVICE bool visible(std::int64_t query, std::int64_t key) const {
    return key < keys && (!causal || key <= query);
  }
  /// Dropout's factors for the probabilities of `key` to `key` + 3.
  BATON_DEVICE void factors(std::int64_t sample, std::int64_t head, std::int64_t query,
                            std::int64_t key, float (&factors)[4]) const {
    std::uint64_t place = first[0] + static_cast<std::uint64_t>(sample);
    place = place * whole[1] + first[1] + static_cast<std::uint64_t>(head);
    place = place * whole[2] + first[2] + static_cast<std::uint64_t>(query);
    mask.quad(place * whole[3] + first[3] + static_cast<std::uint64_t>(key), factors);
  }
};

/// Of one sample and head, of q or of k, from `begin` on.
struct Tile {
  std::int64_t sample, head, begin;
};

// --- products of tiles: thread (y, x) of 16 by 16 has rows 4y + i and columns 4x + j ------------

BATON_DEVICE int row_of(int thread, int i) { return thread / 16 * 4 + i; }
BATON_DEVICE int column_of(int thread, int j) { return thread % 16 * 4 + j; }
/// Where row r of a tile lies: threads' first rows come first, then their second ones, ...
BATON_DEVICE int slot(int r) { return r % 4 * 16 + r / 4; }

/// `rows` rows of `size` elements, and zeros beyond.
template <int width, class T>
BATON_DEVICE void load_tile(int thread, const T* from, std::int64_t stride, std::int64_t rows,
                            int size, bool quads, float* to) {
  constexpr int across = width / 4;
  for (int i = thread; i < tile * across; i += threads) {
    const int r = i / across, column = i % across * 4;
    Quad<float> values{};
    if (r < rows && quads) {
      if (column < size) values = load_quad(from + r * stride + column);
    } else if (r < rows) {
      BATON_UNROLL
      for (int e = 0; e < 4; ++e)
        if (column + e < size) values.lane[e] = load(from + r * stride + column + e);
    }
    store_quad(to + slot(r) * pitch(width) + column, values);
  }
}

/// s = a · bᵀ, of tiles [tile, width].
template <int width>
BATON_DEVICE void score(int thread, const float* a, const float* b, float (&s)[4][4]) {
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) s[i][j] = 0;
#ifdef __CUDA_ARCH__
#pragma unroll 4
#endif
  for (int d = 0; d < width; d += 4) {
    Quad<float> x[4], y[4];
    BATON_UNROLL
    for (int i = 0; i < 4; ++i) {
      x[i] = load_quad(a + slot(row_of(thread, i)) * pitch(width) + d);
      y[i] = load_quad(b + slot(column_of(thread, i)) * pitch(width) + d);
    }
    BATON_UNROLL
    for (int i = 0; i < 4; ++i) BATON_UNROLL
    for (int j = 0; j < 4; ++j) BATON_UNROLL
    for (int e = 0; e < 4; ++e) s[i][j] += x[i].lane[e] * y[j].lane[e];
  }
}

/// A thread's 4 rows of [tile, width], columns 4x to 4x + 3 of every 64.
template <int width>
using Rows = float[4][width / 16];

/// sum += p · b, of p [tile, tile] as scores lie, and b [tile, width].
template <int width>
BATON_DEVICE void accumulate(int thread, const float* p, const float* b, Rows<width>& sum) {
#ifdef __CUDA_ARCH__
#pragma unroll 2
#endif
  for (int k = 0; k < tile; k += 4) {
    Quad<float> x[4];
    BATON_UNROLL
    for (int i = 0; i < 4; ++i) x[i] = load_quad(p + row_of(thread, i) * score_pitch + k);
    BATON_UNROLL
    for (int e = 0; e < 4; ++e) BATON_UNROLL
    for (int c = 0; c < width / tile; ++c) {
      const auto y = load_quad(b + slot(k + e) * pitch(width) + column_of(thread, 0) + c * tile);
      BATON_UNROLL
      for (int i = 0; i < 4; ++i) BATON_UNROLL
      for (int j = 0; j < 4; ++j) sum[i][4 * c + j] += x[i].lane[e] * y.lane[j];
    }
  }
}

template <int width>
BATON_DEVICE void clear(Rows<width>& sum) {
  BATON_UNROLL
  for (int i = 0; i < 4; ++i) BATON_UNROLL
  for (int c = 0; c < width / 16; ++c) sum[i][c] = 0;
}

/// Stores row `i` of a thread's, times `factor`.
template <int width, class T>
BATON_DEVICE void store_row(int thread, int size, bool quads, const Rows<width>& sum, int i,
                            float factor, T* to) {
  BATON_UNROLL
  for (int c = 0; c < width / tile; ++c) {
    const int column = column_of(thread, 0) + c * tile;
    Quad<float> values;
    BATON_UNROLL
    for (int j = 0; j < 4; ++j) values.lane[j] = sum[i][4 * c + j] * factor;
    if (quads) {
      if (column < size) store_quad(to + column, values);
    } else {
      BATON_UNROLL
      for (int j = 0; j < 4; ++j)
        if (column + j < size) store(to + column + j, values.lane[j]);
    }
  }
}

/// Four scores of a row, where the next product finds them.
BATON_DEVICE void put(int thread, int i, const float (&values)[4], float* scores) {
  store_quad(scores + row_of(thread, i) * score_pitch + column_of(thread, 0),
             Quad<float>{{values[0], values[1], values[2], values[3]}});
}

}  // namespace baton::transformer::cuda
