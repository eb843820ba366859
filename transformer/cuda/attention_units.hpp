#pragma once
/// Attention by tiles, forward: what a thread block does. Dao, FlashAttention-2 (2023).

#include <cmath>

#include "products.hpp"

namespace baton::transformer::cuda {

/// Sizes of a thread block's work, and its threads' states.
template <class Kind, int width>
struct Forward {
  static constexpr int blocks = 2;                  ///< of 16 queries, of each warp
  static constexpr int rows = warps * blocks * 16;  ///< queries
  static constexpr int columns = passing<Kind, width>;
  /// Of shared memory: queries, keys, values.
  static constexpr int shared_bytes =
      (rows + 2 * columns) * chunks<Kind, width> * static_cast<int>(sizeof(Chunk));
  struct State {
    Sums<blocks, columns> s;
    Results<blocks, width> out;
    float most[blocks][2], part[blocks][2], sum[blocks][2];
    Factors<blocks> factors;
  };
};

/// `shared`: Forward::shared_bytes, with width at least a head's size.
template <class Kind, int width, class T, class Team>
BATON_DEVICE void attention_unit(Team& team, const Attention<T>& of, const Tile& at,
                                 Chunk* shared) {
  using Sizes = Forward<Kind, width>;
  using State = typename Sizes::State;
  constexpr int blocks = Sizes::blocks, columns = Sizes::columns;
  Chunk *const queries = shared, *const keys = queries + Sizes::rows * chunks<Kind, width>,
               *const values = keys + columns * chunks<Kind, width>;
  const std::int64_t key_head = at.head * of.key_heads / of.heads;
  const auto load_keys = [&](int thread, const Heads<const T>& from, std::int64_t begin,
                             Chunk* to) {
    load_tile<Kind, width, columns>(thread, from.at(at.sample, key_head, begin), from.position,
                                    of.keys - begin, of, to);
    commit_copies();
  };
  /// Calls body(block, half) for a thread's rows.
  const auto each_row = [](auto body) {
    BATON_UNROLL
    for (int m = 0; m < blocks; ++m) BATON_UNROLL
    for (int half = 0; half < 2; ++half) body(m, half);
  };
  const std::int64_t last =
      of.causal && at.begin + Sizes::rows < of.keys ? at.begin + Sizes::rows : of.keys;
  const float scale = of.scale * log2_of_e;
  team.run([&](int thread, State& state) {
    load_tile<Kind, width, Sizes::rows>(thread, of.q.at(at.sample, at.head, at.begin),
                                        of.q.position, of.queries - at.begin, of, queries);
    load_keys(thread, of.k, 0, keys);
    clear<blocks, width>(state.out);
    each_row([&](int m, int half) { state.most[m][half] = -INFINITY, state.sum[m][half] = 0; });
  });
  for (std::int64_t begin = 0; begin < last; begin += columns) {
    team.step([&](int, State&) { wait_for_copies<0>(); });
    team.run([&](int thread, State&) { load_keys(thread, of.v, begin, values); });
    score<Kind, width, blocks, columns>(
        team, queries, keys, [](auto& state) -> auto& { return state.s; });
    const bool all_visible =
        begin + columns <= of.keys && (!of.causal || begin + columns <= at.begin + 1);
    team.run([&](int thread, State& state) {
      each_row([&](int m, int half) {
        float& part = state.part[m][half] = -INFINITY;
        const std::int64_t query = at.begin + row_of<blocks>(thread, m, half);
        BATON_UNROLL
        for (int n = 0; n < columns / 8; ++n) BATON_UNROLL
        for (int i = 0; i < 2; ++i) {
          float& s = state.s[m][n][half * 2 + i];
          if (!all_visible && !of.visible(query, begin + column_of(thread, n, i))) s = -INFINITY;
          part = std::fmax(part, s);
        }
      });
    });
    each_row([&](int m, int half) {
      team.template among<4>([=](State& state) -> float& { return state.part[m][half]; },
                             Largest());
    });
    team.run([&](int thread, State& state) {
      each_row([&](int m, int half) {
        const float most = std::fmax(state.most[m][half], state.part[m][half]);
        const float factor = power_of_two((state.most[m][half] - most) * scale);
        state.most[m][half] = most;
        float sum = 0;
        BATON_UNROLL
        for (int n = 0; n < columns / 8; ++n) BATON_UNROLL
        for (int i = 0; i < 2; ++i) {
          float& p = state.s[m][n][half * 2 + i];
          p = power_of_two(p * scale - most * scale);
          sum += p;
        }
        state.sum[m][half] = state.sum[m][half] * factor + sum;
        BATON_UNROLL
        for (int n = 0; n < width / 8; ++n) BATON_UNROLL
        for (int i = 0; i < 2; ++i) state.out[m][n][half * 2 + i] *= factor;
      });
      if (of.drops) {
        each_factor<blocks, columns>(
            thread, of, at.sample, at.head, at.begin, begin,
            [&](int m, int n, int i, float factor) { state.s[m][n][i] *= factor; });
      }
    });
    team.step([&](int, State&) { wait_for_copies<0>(); });
    team.run([&](int thread, State&) {
      if (begin + columns < last) load_keys(thread, of.k, begin + columns, keys);
    });
    accumulate<Kind, width, blocks, columns>(
        team, [](auto& state) -> auto& { return state.s; }, values,
        [](auto& state) -> auto& { return state.out; });
  }
  each_row([&](int m, int half) {
    team.template among<4>([=](State& state) -> float& { return state.sum[m][half]; }, Sum());
  });
  team.run([&](int thread, State& state) {
    each_row([&](int m, int half) {
      const std::int64_t query = at.begin + row_of<blocks>(thread, m, half);
      if (query >= of.queries) return;
      const float sum = state.sum[m][half];
      store_row<Kind, width, blocks>(thread, of, state.out, m, half, 1 / sum,
                                     of.out.at(at.sample, at.head, query));
      if (place_of(thread) == 0)
        of.log_sums[of.row(at.sample, at.head, query)] =
            state.most[m][half] * of.scale + std::log(sum);
    });
  });
}

}  // namespace baton::transformer::cuda
