#pragma once
/// Attention by tiles, backward: what a thread block does. The gradients by keys and values are
/// computed key by key, apart from those by queries, so nothing is added atomically.
///
/// With p the probabilities, m dropout's factors and dp = m · (dout · vᵀ), the gradient of scores
/// is p · (dp - dots), where dots = Σ p · dp = dout · out.

#include <cmath>

#include "tiles.hpp"

namespace baton::transformer::cuda {

template <int width>
struct QueryGradientState {
  float s[4][4], ds[4][4], dot[4], log_sum[4];
  Rows<width> dq;
};
template <int width>
inline constexpr int query_gradient_floats = 3 * tile* pitch(width) + tile* score_pitch;

/// dq and dots of a tile of queries.
template <int width, class T, class Team>
BATON_DEVICE void query_gradient_unit(Team& team, const Attention<T>& of, const Tile& at,
                                      float* shared) {
  using State = QueryGradientState<width>;
  float *const queries = shared, *const gradients = queries + tile * pitch(width),
               *const others = gradients + tile * pitch(width),
               *const scores = others + tile * pitch(width);
  const std::int64_t key_head = at.head * of.key_heads / of.heads;
  const auto load_keys = [&](int thread, const Heads<const T>& from, std::int64_t begin) {
    load_tile<width>(thread, from.at(at.sample, key_head, begin), from.position, of.keys - begin,
                     of.size, of.quads, others);
  };
  const auto load_queries = [&](int thread, const Heads<const T>& from, float* to) {
    load_tile<width>(thread, from.at(at.sample, at.head, at.begin), from.position,
                     of.queries - at.begin, of.size, of.quads, to);
  };
  team.step([&](int thread, State& state) {
    load_queries(thread, of.q, queries);
    load_queries(thread, of.dout, gradients);
    clear<width>(state.dq);
    BATON_UNROLL
    for (int i = 0; i < 4; ++i) {
      const std::int64_t query = at.begin + row_of(thread, i);
      const bool there = query < of.queries;
      // Of a row that is not there, probabilities are 0.
      state.log_sum[i] = there ? of.result_log_sums[of.row(at.sample, at.head, query)] : INFINITY;
      state.dot[i] = 0;
      if (!there) continue;
      const T* const result = of.result.at(at.sample, at.head, query);
      const T* const dout = of.dout.at(at.sample, at.head, query);
      for (int c = thread % 16; c < of.size; c += 16)
        state.dot[i] += load(result + c) * load(dout + c);
    }
  });
  BATON_UNROLL
  for (int i = 0; i < 4; ++i)
    team.template among<16>([=](State& state) -> float& { return state.dot[i]; }, Sum());
  const std::int64_t seen = of.causal ? at.begin + tile : of.keys;
  for (std::int64_t begin = 0; begin < seen && begin < of.keys; begin += tile) {
    team.step([&](int thread, State&) { load_keys(thread, of.v, begin); });
    team.step([&](int thread, State& state) { score<width>(thread, gradients, others, state.ds); });
    team.step([&](int thread, State&) { load_keys(thread, of.k, begin); });
    team.step([&](int thread, State& state) {
      score<width>(thread, queries, others, state.s);
      BATON_UNROLL
      for (int i = 0; i < 4; ++i) {
        const std::int64_t query = at.begin + row_of(thread, i), key = begin + column_of(thread, 0);
        float factors[4] = {1, 1, 1, 1};
        if (of.drops) of.factors(at.sample, at.head, query, key, factors);
        BATON_UNROLL
        for (int j = 0; j < 4; ++j) {
          const float p = std::exp(state.s[i][j] * of.scale - state.log_sum[i]);
          const float ds = p * (state.ds[i][j] * factors[j] - state.dot[i]) * of.scale;
          state.ds[i][j] = of.visible(query, key + j) ? ds : 0;
        }
        put(thread, i, state.ds[i], scores);
      }
    });
    team.step(
        [&](int thread, State& state) { accumulate<width>(thread, scores, others, state.dq); });
  }
  team.run([&](int thread, State& state) {
    BATON_UNROLL
    for (int i = 0; i < 4; ++i) {
      const std::int64_t query = at.begin + row_of(thread, i);
      if (query >= of.queries) continue;
      store_row<width>(thread, of.size, of.quads, state.dq, i, 1,
                       of.dq.at(at.sample, at.head, query));
      if (thread % 16 == 0) of.dots[of.row(at.sample, at.head, query)] = state.dot[i];
    }
  });
}

template <int width>
struct KeyGradientState {
  float s[4][4], ds[4][4];
  Rows<width> dk, dv;
};
template <int width>
inline constexpr int key_gradient_floats = 4 * tile* pitch(width) + tile* score_pitch + 2 * tile;

/// dk and dv of a tile of keys, `at.head` being k's, from dots. Rows are keys here, columns
/// queries.
template <int width, class T, class Team>
BATON_DEVICE void key_gradient_unit(Team& team, const Attention<T>& of, const Tile& at,
                                    float* shared) {
  using State = KeyGradientState<width>;
  float *const keys = shared, *const values = keys + tile * pitch(width),
               *const queries = values + tile * pitch(width),
               *const gradients = queries + tile * pitch(width),
               *const scores = gradients + tile * pitch(width),
               *const log_sums = scores + tile * score_pitch, *const dots = log_sums + tile;
  const auto load_keys = [&](int thread, const Heads<const T>& from, float* to) {
    load_tile<width>(thread, from.at(at.sample, at.head, at.begin), from.position,
                     of.keys - at.begin, of.size, of.quads, to);
  };
  team.step([&](int thread, State& state) {
    load_keys(thread, of.k, keys);
    load_keys(thread, of.v, values);
    clear<width>(state.dk);
    clear<width>(state.dv);
  });
  const std::int64_t each = of.heads / of.key_heads;
  for (std::int64_t head = at.head * each; head < (at.head + 1) * each; ++head) {
    const auto load_queries = [&](int thread, const Heads<const T>& from, std::int64_t begin,
                                  float* to) {
      load_tile<width>(thread, from.at(at.sample, head, begin), from.position, of.queries - begin,
                       of.size, of.quads, to);
    };
    for (std::int64_t begin = of.causal ? at.begin : 0; begin < of.queries; begin += tile) {
      team.step([&](int thread, State&) {
        load_queries(thread, of.q, begin, queries);
        load_queries(thread, of.dout, begin, gradients);
        if (thread >= tile) return;
        const bool there = begin + thread < of.queries;
        const std::int64_t row = of.row(at.sample, head, begin + thread);
        log_sums[thread] = there ? of.result_log_sums[row] : INFINITY;
        dots[thread] = there ? of.dots[row] : 0;
      });
      team.step([&](int thread, State& state) {
        score<width>(thread, keys, queries, state.s);
        score<width>(thread, values, gradients, state.ds);
        BATON_UNROLL
        for (int j = 0; j < 4; ++j) {
          const int column = column_of(thread, j);
          const std::int64_t query = begin + column, key = at.begin + row_of(thread, 0);
          float factors[4] = {1, 1, 1, 1};
          if (of.drops) of.factors(at.sample, head, query, key, factors);
          BATON_UNROLL
          for (int i = 0; i < 4; ++i) {
            const bool visible = of.visible(query, key + i);
            const float p = std::exp(state.s[i][j] * of.scale - log_sums[column]);
            const float ds = p * (state.ds[i][j] * factors[i] - dots[column]) * of.scale;
            state.s[i][j] = visible ? p * factors[i] : 0;
            state.ds[i][j] = visible ? ds : 0;
          }
        }
        BATON_UNROLL
        for (int i = 0; i < 4; ++i) put(thread, i, state.s[i], scores);
      });
      team.step([&](int thread, State& state) {
        accumulate<width>(thread, scores, gradients, state.dv);
      });
      team.step([&](int thread, State& state) {
        BATON_UNROLL
        for (int i = 0; i < 4; ++i) put(thread, i, state.ds[i], scores);
      });
      team.step(
          [&](int thread, State& state) { accumulate<width>(thread, scores, queries, state.dk); });
    }
  }
  team.run([&](int thread, State& state) {
    BATON_UNROLL
    for (int i = 0; i < 4; ++i) {
      const std::int64_t key = at.begin + row_of(thread, i);
      if (key >= of.keys) continue;
      store_row<width>(thread, of.size, of.quads, state.dk, i, 1,
                       of.dk.at(at.sample, at.head, key));
      store_row<width>(thread, of.size, of.quads, state.dv, i, 1,
                       of.dv.at(at.sample, at.head, key));
    }
  });
}

}  // namespace baton::transformer::cuda
