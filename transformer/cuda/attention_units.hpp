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
  /// The next keys and values are copied beside the work on those that are there.
  static constexpr int stages = Kind::by_warpgroups ? 2 : 1;
  /// Of shared memory: queries, then keys and values of each stage.
  static constexpr int shared_bytes =
      (rows + stages * 2 * columns) * chunks<Kind, width> * static_cast<int>(sizeof(Chunk));
  struct State {
    Sums<blocks, columns> s;
    Results<blocks, width> out;
    float most[blocks][2], part[blocks][2], sum[blocks][2];
    Factors<blocks> factors;
    Rounded<blocks, columns> words;
    Stored<width> stored;
  };
};

/// Exponents are relative to a row's `most`. It is raised only when a score exceeds it by more than
/// this, in powers of two, so results are seldom rescaled.
inline constexpr float most_growth = 8;

/// `shared`: Forward::shared_bytes, with width at least a head's size.
template <class Kind, int width, class T, class Team>
BATON_DEVICE void attention_unit(Team& team, const Attention<T>& of, const Tile& at,
                                 Chunk* shared) {
  using Sizes = Forward<Kind, width>;
  using State = typename Sizes::State;
  constexpr int blocks = Sizes::blocks, columns = Sizes::columns, stages = Sizes::stages;
  constexpr int passed = columns * chunks<Kind, width>;
  Chunk *const queries = shared, *const others = queries + Sizes::rows * chunks<Kind, width>;
  const auto keys = [&](int stage) { return others + stage * 2 * passed; };
  const auto values = [&](int stage) { return keys(stage) + passed; };
  const std::int64_t key_head = at.head * of.key_heads / of.heads;
  const auto load_keys = [&](int stage, Source which, std::int64_t begin, Chunk* to) {
    start_tile<Kind, width, columns>(team, stage, of, which, {at.sample, key_head, begin}, to);
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
  start_tile<Kind, width, Sizes::rows>(team, 0, of, Source::q, at, queries);
  load_keys(0, Source::k, 0, keys(0));
  if (stages == 2) load_keys(0, Source::v, 0, values(0));
  finish_tiles<Kind>(team, 0);
  team.run([&](int, State& state) {
    clear<blocks, width>(state.out);
    each_row([&](int m, int half) { state.most[m][half] = -INFINITY, state.sum[m][half] = 0; });
  });
  /// Makes probabilities, but for a factor of each row, of a block's scores.
  const auto softmax = [&](int m, std::int64_t begin, bool all_visible) {
    team.run([&](int thread, State& state) {
      BATON_UNROLL
      for (int half = 0; half < 2; ++half) {
        const auto& s = state.s[m];
        if (!all_visible) {
          const int seen = of.visible_keys(at.begin + row_of(thread, m, half), begin, columns);
          BATON_UNROLL
          for (int n = 0; n < columns / 8; ++n) BATON_UNROLL
          for (int i = 0; i < 2; ++i)
            if (column_of(thread, n, i) >= seen) state.s[m][n][half * 2 + i] = -INFINITY;
        }
        float part[2] = {s[0][half * 2], s[0][half * 2 + 1]};  // two, to wait less for each other
        BATON_UNROLL
        for (int n = 1; n < columns / 8; ++n) BATON_UNROLL
        for (int i = 0; i < 2; ++i) part[i] = std::fmax(part[i], s[n][half * 2 + i]);
        state.part[m][half] = std::fmax(part[0], part[1]);
      }
    });
    BATON_UNROLL
    for (int half = 0; half < 2; ++half)
      team.template among<4>([=](State& state) -> float& { return state.part[m][half]; },
                             Largest());
    team.run([&](int thread, State& state) {
      BATON_UNROLL
      for (int half = 0; half < 2; ++half) {
        float& most = state.most[m][half];
        const float part = state.part[m][half];
        if ((part - most) * scale > most_growth) {
          const float factor = power_of_two((most - part) * scale);
          most = part;
          state.sum[m][half] *= factor;
          BATON_UNROLL
          for (int n = 0; n < width / 8; ++n) BATON_UNROLL
          for (int i = 0; i < 2; ++i) state.out[m][n][half * 2 + i] *= factor;
        }
        const float shift = most * scale;
        float sum[2] = {0, 0};
        BATON_UNROLL
        for (int n = 0; n < columns / 8; ++n) BATON_UNROLL
        for (int i = 0; i < 2; ++i) {
          float& p = state.s[m][n][half * 2 + i];
          p = power_of_two(p * scale - shift);
          sum[i] += p;
        }
        state.sum[m][half] += sum[0] + sum[1];
      }
      if (of.drops) {
        each_factor<columns>(thread, m, of, at.sample, at.head, at.begin, begin,
                             [&](int n, int i, float factor) { state.s[m][n][i] *= factor; });
      }
    });
  };
  const auto scores = [](auto& state) -> auto& { return state.s; };
  const auto words = [](auto& state) -> auto& { return state.words; };
  const auto results = [](auto& state) -> auto& { return state.out; };
  int stage = 0;
  for (std::int64_t begin = 0; begin < last; begin += columns, stage = (stage + 1) % stages) {
    const std::int64_t next = begin + columns;
    team.step([&](int, State&) { wait_for_copies<Kind>(); });
    if constexpr (stages == 1) load_keys(0, Source::v, begin, values(0));
    await_tiles<Kind>(team, stage);
    const bool all_visible =
        begin + columns <= of.keys && (!of.causal || begin + columns <= at.begin + 1);
    if constexpr (Kind::by_warpgroups) {  // one block's products beside the other's powers
      static_assert(blocks == 2);
      const auto score_block = [&](int m) {
        score<Kind, width, blocks, columns>(team, queries, keys(stage), scores, m);
      };
      const auto scores_of = [](int m) {
        return [m](State & state) -> auto& { return state.s[m]; };
      };
      const auto finish_block = [&](int m) {
        softmax(m, begin, all_visible);
        accumulate<Kind, width, blocks, columns>(team, scores, words, values(stage), results, m);
      };
      const auto start_next = [&] {
        if (next >= last) return;
        load_keys(1 - stage, Source::k, next, keys(1 - stage));
        load_keys(1 - stage, Source::v, next, values(1 - stage));
        finish_tiles<Kind>(team, 1 - stage);
      };
      if (!of.causal || begin < at.begin + Sizes::rows / 2) {
        score_block(0);
        score_block(1);
        start_next();
        await_products<Kind, 1>(team, scores_of(0));
        finish_block(0);
        await_products<Kind, 1>(team, scores_of(1));
        finish_block(1);
        await_products<Kind, 0>(team, results);
      } else {  // no query of the first block sees these keys
        score_block(1);
        start_next();
        await_products<Kind, 0>(team, scores_of(1));
        finish_block(1);
        await_products<Kind, 0>(team, results);
      }
    } else {
      score<Kind, width, blocks, columns>(team, queries, keys(stage), scores);
      BATON_UNROLL
      for (int m = 0; m < blocks; ++m) softmax(m, begin, all_visible);
      team.step([&](int, State&) { wait_for_copies<Kind>(); });
      if (next < last) load_keys(0, Source::k, next, keys(0));
      accumulate<Kind, width, blocks, columns>(team, scores, words, values(0), results);
    }
  }
  each_row([&](int m, int half) {
    team.template among<4>([=](State& state) -> float& { return state.sum[m][half]; }, Sum());
  });
  BATON_UNROLL
  for (int m = 0; m < blocks; ++m) {
    store_rows<Kind, width>(
        team, of, results, m, [=](const State& state, int half) { return 1 / state.sum[m][half]; },
        [&](int thread, int half) -> T* {
          const std::int64_t query = at.begin + row_of(thread, m, half);
          return query < of.queries ? of.out.at(at.sample, at.head, query) : nullptr;
        });
  }
  team.run([&](int thread, State& state) {
    each_row([&](int m, int half) {
      const std::int64_t query = at.begin + row_of(thread, m, half);
      if (query < of.queries && place_of(thread) == 0)
        of.log_sums[of.row(at.sample, at.head, query)] =
            state.most[m][half] * of.scale + std::log(state.sum[m][half]);
    });
  });
}

}  // namespace baton::transformer::cuda
