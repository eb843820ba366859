#pragma once
/// Layer norm, sums of columns: what a thread block or a thread does. Sums are in f32, each in an
/// order that depends on shapes only.

#include <cmath>

#include "element.hpp"
#include "team.hpp"

namespace baton::transformer::cuda {

/// A row belongs to the 32 threads of a warp.
inline constexpr int lanes = 32, rows_each = threads / lanes;

// --- layer norm ----------------------------------------------------------------------------------

template <class T>
struct LayerNorm {
  std::int64_t rows, n;
  const T *x, *weight, *bias;
  float epsilon;
  T* y;
  float* stats;        ///< [rows, 2]: mean, 1 / deviation
  bool quads = false;  ///< all rows take them
};
struct NormState {
  float a, b, mean, scale;
};

/// Rows `first` to `first` + rows_each - 1.
template <class T, class Team>
BATON_DEVICE void layer_norm_unit(Team& team, const LayerNorm<T>& of, std::int64_t first) {
  const auto each = [&](int thread, auto body) {
    const std::int64_t row = first + thread / lanes;
    if (row >= of.rows) return;
    for (std::int64_t i = thread % lanes * 4; i < of.n; i += lanes * 4) {
      const std::int64_t at = row * of.n + i, left = of.n - i;
      body(at, i, left, load_some(of.x + at, of.quads, left));
    }
  };
  const auto part = [](NormState& state) -> float& { return state.a; };
  team.run([&](int thread, NormState& state) {
    state.a = 0;
    each(thread, [&](std::int64_t, std::int64_t, std::int64_t, const Quad<float>& x) {
      state.a += (x.lane[0] + x.lane[1]) + (x.lane[2] + x.lane[3]);
    });
  });
  team.template among<lanes>(part, Sum());
  team.run([&](int thread, NormState& state) {
    state.mean = state.a / static_cast<float>(of.n);
    state.a = 0;
    each(thread, [&](std::int64_t, std::int64_t, std::int64_t left, const Quad<float>& x) {
      BATON_UNROLL
      for (int k = 0; k < 4; ++k) {
        const float deviation = k < left ? x.lane[k] - state.mean : 0;
        state.a += deviation * deviation;
      }
    });
  });
  team.template among<lanes>(part, Sum());
  team.run([&](int thread, NormState& state) {
    state.scale = 1 / std::sqrt(state.a / static_cast<float>(of.n) + of.epsilon);
    each(thread, [&](std::int64_t at, std::int64_t i, std::int64_t left, Quad<float> x) {
      const Quad<float> weight = load_some(of.weight + i, of.quads, left),
                        bias = load_some(of.bias + i, of.quads, left);
      BATON_UNROLL
      for (int k = 0; k < 4; ++k)
        x.lane[k] = (x.lane[k] - state.mean) * state.scale * weight.lane[k] + bias.lane[k];
      store_some(of.y + at, of.quads, left, x);
    });
    const std::int64_t row = first + thread / lanes;
    if (row < of.rows && thread % lanes == 0) {
      of.stats[2 * row] = state.mean;
      of.stats[2 * row + 1] = state.scale;
    }
  });
}

template <class T>
struct LayerNormBackward {
  std::int64_t rows, n;
  const T *dy, *x, *weight;
  const float* stats;
  T* dx;
  bool quads = false;  ///< all rows take them
};

/// With z = (x - mean) · scale and g = dy · weight: dx = scale · (g - mean(g) - z · mean(g · z)).
template <class T, class Team>
BATON_DEVICE void layer_norm_backward_unit(Team& team, const LayerNormBackward<T>& of,
                                           std::int64_t first) {
  const auto each = [&](int thread, const NormState& state, auto body) {
    const std::int64_t row = first + thread / lanes;
    if (row >= of.rows) return;
    for (std::int64_t i = thread % lanes * 4; i < of.n; i += lanes * 4) {
      const std::int64_t at = row * of.n + i, left = of.n - i;
      Quad<float> g = load_some(of.dy + at, of.quads, left),
                  z = load_some(of.x + at, of.quads, left);
      const Quad<float> weight = load_some(of.weight + i, of.quads, left);
      BATON_UNROLL
      for (int k = 0; k < 4; ++k)  // behind the row, dy is 0
        g.lane[k] *= weight.lane[k], z.lane[k] = (z.lane[k] - state.mean) * state.scale;
      body(at, left, g, z);
    }
  };
  team.run([&](int thread, NormState& state) {
    const std::int64_t row = first + thread / lanes;
    state = {0, 0, 0, 0};
    if (row < of.rows) state.mean = of.stats[2 * row], state.scale = of.stats[2 * row + 1];
    each(thread, state,
         [&](std::int64_t, std::int64_t, const Quad<float>& g, const Quad<float>& z) {
           BATON_UNROLL
           for (int k = 0; k < 4; ++k) state.a += g.lane[k], state.b += g.lane[k] * z.lane[k];
         });
  });
  team.template among<lanes>([](NormState& state) -> float& { return state.a; }, Sum());
  team.template among<lanes>([](NormState& state) -> float& { return state.b; }, Sum());
  team.run([&](int thread, NormState& state) {
    const auto n = static_cast<float>(of.n);
    const float mean_g = state.a / n, mean_gz = state.b / n;
    each(thread, state,
         [&](std::int64_t at, std::int64_t left, Quad<float> g, const Quad<float>& z) {
           BATON_UNROLL
           for (int k = 0; k < 4; ++k)
             g.lane[k] = state.scale * (g.lane[k] - mean_g - z.lane[k] * mean_gz);
           store_some(of.dx + at, of.quads, left, g);
         });
  });
}

// --- sums of columns: partial ones of chunks of rows, then their sums in turn -------------------

struct Chunks {
  std::int64_t rows, n, each, count;
  BATON_DEVICE std::int64_t begin(std::int64_t chunk) const { return chunk * each; }
  BATON_DEVICE std::int64_t end(std::int64_t chunk) const {
    const std::int64_t end = begin(chunk) + each;
    return end < rows ? end : rows;
  }
};
/// At least 64 rows a chunk, at most 256 chunks.
inline Chunks chunks_of(std::int64_t rows, std::int64_t n) {
  const std::int64_t each = rows <= 64 * 256 ? 64 : (rows + 255) / 256;
  return {rows, n, each, (rows + each - 1) / each};
}

/// partial [count, n] of x [rows, n], of one chunk and column.
template <class T>
BATON_DEVICE void column_sum_unit(const Chunks& chunks, std::int64_t chunk, std::int64_t column,
                                  const T* x, float* partial) {
  float sum = 0;
  BATON_UNROLL_BY(16)
  for (std::int64_t row = chunks.begin(chunk); row < chunks.end(chunk); ++row)
    sum += load(x + row * chunks.n + column);
  partial[chunk * chunks.n + column] = sum;
}
/// partial [2, count, n]: of dy · z for the gradient of layer norm's weight, and of dy.
template <class T>
BATON_DEVICE void norm_sum_unit(const Chunks& chunks, std::int64_t chunk, std::int64_t column,
                                const LayerNormBackward<T>& of, float* partial) {
  float weight = 0, bias = 0;
  BATON_UNROLL_BY(8)
  for (std::int64_t row = chunks.begin(chunk); row < chunks.end(chunk); ++row) {
    const std::int64_t at = row * chunks.n + column;
    const float dy = load(of.dy + at);
    weight += dy * ((load(of.x + at) - of.stats[2 * row]) * of.stats[2 * row + 1]);
    bias += dy;
  }
  partial[chunk * chunks.n + column] = weight;
  partial[(chunks.count + chunk) * chunks.n + column] = bias;
}
/// sum[column] += all chunks' partial sums.
template <class T>
BATON_DEVICE void add_chunks_unit(const Chunks& chunks, std::int64_t column, const float* partial,
                                  T* sum) {
  float all = 0;
  BATON_UNROLL_BY(16)
  for (std::int64_t chunk = 0; chunk < chunks.count; ++chunk)
    all += partial[chunk * chunks.n + column];
  store(sum + column, load(sum + column) + all);
}

}  // namespace baton::transformer::cuda
