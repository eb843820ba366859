#pragma once
/// Attention by tiles, forward: what a thread block does. Dao et al., FlashAttention (2022).

#include <cmath>

#include "tiles.hpp"

namespace baton::transformer::cuda {

template <int width>
struct AttentionState {
  float s[4][4], most[4], sum[4], part[4];
  Rows<width> out;
};
template <int width>
inline constexpr int attention_floats = 2 * tile* pitch(width) + tile* score_pitch;

/// `shared`: attention_floats<width>, aligned to 16 bytes, with width at least a head's size.
template <int width, class T, class Team>
BATON_DEVICE void attention_unit(Team& team, const Attention<T>& of, const Tile& at,
                                 float* shared) {
  using State = AttentionState<width>;
  float *const queries = shared, *const others = queries + tile * pitch(width),
               *const scores = others + tile * pitch(width);
  const std::int64_t key_head = at.head * of.key_heads / of.heads;
  const auto load_keys = [&](int thread, const Heads<const T>& from, std::int64_t begin) {
    load_tile<width>(thread, from.at(at.sample, key_head, begin), from.position, of.keys - begin,
                     of.size, of.quads, others);
  };
  team.step([&](int thread, State& state) {
    load_tile<width>(thread, of.q.at(at.sample, at.head, at.begin), of.q.position,
                     of.queries - at.begin, of.size, of.quads, queries);
    clear<width>(state.out);
    for (int i = 0; i < 4; ++i) state.most[i] = -INFINITY, state.sum[i] = 0;
  });
  const std::int64_t seen = of.causal ? at.begin + tile : of.keys;
  for (std::int64_t begin = 0; begin < seen && begin < of.keys; begin += tile) {
    team.step([&](int thread, State&) { load_keys(thread, of.k, begin); });
    team.step([&](int thread, State& state) {
      score<width>(thread, queries, others, state.s);
      BATON_UNROLL
      for (int i = 0; i < 4; ++i) {
        state.part[i] = -INFINITY;
        BATON_UNROLL
        for (int j = 0; j < 4; ++j) {
          const bool visible =
              of.visible(at.begin + row_of(thread, i), begin + column_of(thread, j));
          state.s[i][j] = visible ? state.s[i][j] * of.scale : -INFINITY;
          state.part[i] = largest(state.part[i], state.s[i][j]);
        }
      }
    });
    BATON_UNROLL
    for (int i = 0; i < 4; ++i)
      team.template among<16>([=](State& state) -> float& { return state.part[i]; }, Largest());
    team.step([&](int thread, State& state) {
      load_keys(thread, of.v, begin);
      BATON_UNROLL
      for (int i = 0; i < 4; ++i) {
        const float most = largest(state.most[i], state.part[i]);
        const float factor = std::exp(state.most[i] - most);
        state.most[i] = most;
        state.sum[i] *= factor;
        BATON_UNROLL
        for (float& o : state.out[i]) o *= factor;
        state.part[i] = 0;
        BATON_UNROLL
        for (float& p : state.s[i]) p = std::exp(p - most), state.part[i] += p;
        if (of.drops) {
          float factors[4];
          of.factors(at.sample, at.head, at.begin + row_of(thread, i), begin + column_of(thread, 0),
                     factors);
          BATON_UNROLL
          for (int j = 0; j < 4; ++j) state.s[i][j] *= factors[j];
        }
        put(thread, i, state.s[i], scores);
      }
    });
    BATON_UNROLL
    for (int i = 0; i < 4; ++i)
      team.template among<16>([=](State& state) -> float& { return state.part[i]; }, Sum());
    team.step([&](int thread, State& state) {
      BATON_UNROLL
      for (int i = 0; i < 4; ++i) state.sum[i] += state.part[i];
      accumulate<width>(thread, scores, others, state.out);
    });
  }
  team.run([&](int thread, State& state) {
    BATON_UNROLL
    for (int i = 0; i < 4; ++i) {
      const std::int64_t query = at.begin + row_of(thread, i);
      if (query >= of.queries) continue;
      store_row<width>(thread, of.size, of.quads, state.out, i, 1 / state.sum[i],
                       of.out.at(at.sample, at.head, query));
      if (thread % 16 == 0)
        of.log_sums[of.row(at.sample, at.head, query)] = state.most[i] + std::log(state.sum[i]);
    }
  });
}

}  // namespace baton::transformer::cuda
