#pragma once
/// Attention by tiles, backward: what a thread block does. The gradients by keys and values are
/// computed key by key, apart from those by queries, so nothing is added atomically.
///
/// With p the probabilities, m dropout's factors and dp = m · (dout · vᵀ), the gradient of scores
/// is p · (dp - dots), where dots = Σ p · dp = dout · out.

#include <cmath>

#include "products.hpp"

namespace baton::transformer::cuda {

/// Sizes of a thread block's work: two tiles stay, two others pass by.
template <class Kind, int width>
struct Backward {
  static constexpr int blocks = 1;                  ///< of 16 rows, of each warp
  static constexpr int rows = warps * blocks * 16;  ///< of the tiles that stay
  static constexpr int columns = passing<Kind, width>;
  /// The next tiles are copied beside the work on those that are there, if there is room for both.
  static constexpr int stages = columns == 64 ? 2 : 1;
  static constexpr int held = rows * chunks<Kind, width>, passed = columns * chunks<Kind, width>;
  static constexpr int shared_chunks = 2 * held + stages * 2 * passed;
  /// Floats behind them: log_sums and dots of the columns, for gradients by keys.
  static constexpr int shared_floats = stages * 2 * columns;
  static constexpr int shared_bytes = shared_chunks * static_cast<int>(sizeof(Chunk)) +
                                      shared_floats * static_cast<int>(sizeof(float));
};

/// Calls hold(), which starts the tiles that stay, load(number, stage), which starts those of
/// `tiles`, and work(number, stage, next) when each is there, which calls next() to start those
/// that come next.
template <class Kind, int stages, class Team, class Hold, class Load, class Work>
BATON_DEVICE void pass_by(Team& team, std::int64_t tiles, Hold hold, Load load, Work work) {
  if (tiles <= 0) return;
  const auto start = [&](std::int64_t number) {
    const int stage = static_cast<int>(number % stages);
    if (number >= tiles) return;
    load(number, stage);
    finish_tiles<Kind>(team, stage);
  };
  hold();
  start(0);
  for (std::int64_t number = 0; number < tiles; ++number) {
    team.step([&](int, auto&) { wait_for_copies<Kind>(); });
    const int stage = static_cast<int>(number % stages);
    await_tiles<Kind>(team, stage);
    work(number, stage, [&] {
      if constexpr (stages == 2) start(number + 1);
    });
    if constexpr (stages == 1) {
      team.step([](int, auto&) {});
      start(number + 1);
    }
  }
}

template <class Kind, int width>
struct QueryGradientState {
  using Sizes = Backward<Kind, width>;
  Sums<Sizes::blocks, Sizes::columns> s, ds;
  Results<Sizes::blocks, width> dq;
  float dot[2], log_sum[2];  ///< log_sum: times log2_of_e
  Factors<Sizes::blocks> factors;
  Rounded<Sizes::blocks, Sizes::columns> words;
  Stored<width> stored;
};

/// dq and dots of a tile of queries. `shared`: Backward::shared_bytes.
template <class Kind, int width, class T, class Team>
BATON_DEVICE void query_gradient_unit(Team& team, const Attention<T>& of, const Tile& at,
                                      Chunk* shared) {
  using State = QueryGradientState<Kind, width>;
  using Sizes = Backward<Kind, width>;
  constexpr int columns = Sizes::columns, elements = chunk_elements<T>;
  Chunk *const queries = shared, *const gradients = queries + Sizes::held,
               *const others = gradients + Sizes::held;
  const auto keys = [&](int stage) { return others + stage * 2 * Sizes::passed; };
  const auto values = [&](int stage) { return keys(stage) + Sizes::passed; };
  const std::int64_t key_head = at.head * of.key_heads / of.heads;
  const auto hold = [&] {
    start_tile<Kind, width, Sizes::rows>(team, 0, of, Source::q, at, queries);
    start_tile<Kind, width, Sizes::rows>(team, 0, of, Source::dout, at, gradients);
  };
  team.run([&](int thread, State& state) {
    clear<1, width>(state.dq);
    BATON_UNROLL
    for (int half = 0; half < 2; ++half) {
      const std::int64_t query = at.begin + row_of(thread, 0, half);
      const bool there = query < of.queries;
      // Of a row that is not there, probabilities are 0.
      state.log_sum[half] =
          there ? of.result_log_sums[of.row(at.sample, at.head, query)] * log2_of_e : INFINITY;
      state.dot[half] = 0;
      if (!there) continue;
      const T* const result = of.result.at(at.sample, at.head, query);
      const T* const dout = of.dout.at(at.sample, at.head, query);
      for (int c = place_of(thread) * elements; c < of.size; c += 4 * elements) {
        float x[elements], y[elements];
        widen_from(of, result + c, of.size - c, x);
        widen_from(of, dout + c, of.size - c, y);
        BATON_UNROLL
        for (int e = 0; e < elements; ++e) state.dot[half] += x[e] * y[e];
      }
    }
  });
  BATON_UNROLL
  for (int half = 0; half < 2; ++half)
    team.template among<4>([=](State& state) -> float& { return state.dot[half]; }, Sum());
  const std::int64_t last =
      of.causal && at.begin + Sizes::rows < of.keys ? at.begin + Sizes::rows : of.keys;
  const auto load = [&](std::int64_t number, int stage) {
    const Tile from{at.sample, key_head, number * columns};
    start_tile<Kind, width, columns>(team, stage, of, Source::k, from, keys(stage));
    start_tile<Kind, width, columns>(team, stage, of, Source::v, from, values(stage));
  };
  const auto scores = [](auto& state) -> auto& { return state.s; };
  const auto gradients_of_scores = [](auto& state) -> auto& { return state.ds; };
  const auto results = [](auto& state) -> auto& { return state.dq; };
  const float scale = of.scale * log2_of_e;
  pass_by<Kind, Sizes::stages>(
      team, (last + columns - 1) / columns, hold, load,
      [&](std::int64_t number, int stage, auto next_tiles) {
        const std::int64_t begin = number * columns;
        if constexpr (!Kind::by_warpgroups) next_tiles();
        score<Kind, width, 1, columns>(team, queries, keys(stage), scores);
        score<Kind, width, 1, columns>(team, gradients, values(stage), gradients_of_scores);
        if constexpr (Kind::by_warpgroups) next_tiles();  // beside the products
        await_products<Kind, 1>(team, scores);
        team.run([&](int, State& state) {
          BATON_UNROLL
          for (int n = 0; n < columns / 8; ++n) BATON_UNROLL
          for (int i = 0; i < 4; ++i)
            state.s[0][n][i] = power_of_two(state.s[0][n][i] * scale - state.log_sum[i / 2]);
        });
        await_products<Kind, 0>(team, gradients_of_scores);
        const bool all_visible =
            begin + columns <= of.keys && (!of.causal || begin + columns <= at.begin + 1);
        team.run([&](int thread, State& state) {
          if (of.drops) {
            each_factor<columns>(thread, 0, of, at.sample, at.head, at.begin, begin,
                                 [&](int n, int i, float factor) { state.ds[0][n][i] *= factor; });
          }
          BATON_UNROLL
          for (int half = 0; half < 2; ++half) {
            BATON_UNROLL
            for (int n = 0; n < columns / 8; ++n) BATON_UNROLL
            for (int i = 0; i < 2; ++i) {
              float& ds = state.ds[0][n][half * 2 + i];
              ds = state.s[0][n][half * 2 + i] * (ds - state.dot[half]);
            }
            if (all_visible) continue;
            const int seen = of.visible_keys(at.begin + row_of(thread, 0, half), begin, columns);
            BATON_UNROLL
            for (int n = 0; n < columns / 8; ++n) BATON_UNROLL
            for (int i = 0; i < 2; ++i)
              if (column_of(thread, n, i) >= seen) state.ds[0][n][half * 2 + i] = 0;
          }
        });
        accumulate<Kind, width, 1, columns>(
            team, gradients_of_scores, [](auto& state) -> auto& { return state.words; },
            keys(stage), results);
        await_products<Kind, 0>(team, results);
      });
  store_rows<Kind, width>(
      team, of, results, 0, [&](const State&, int) { return of.scale; },
      [&](int thread, int half) -> T* {
        const std::int64_t query = at.begin + row_of(thread, 0, half);
        return query < of.queries ? of.dq.at(at.sample, at.head, query) : nullptr;
      });
  team.run([&](int thread, State& state) {
    BATON_UNROLL
    for (int half = 0; half < 2; ++half) {
      const std::int64_t query = at.begin + row_of(thread, 0, half);
      if (query < of.queries && place_of(thread) == 0)
        of.dots[of.row(at.sample, at.head, query)] = state.dot[half];
    }
  });
}

template <class Kind, int width>
struct KeyGradientState {
  using Sizes = Backward<Kind, width>;
  Sums<Sizes::blocks, Sizes::columns> s, ds;
  Results<Sizes::blocks, width> dk, dv;
  Factors<Sizes::blocks> factors;
  Rounded<Sizes::blocks, Sizes::columns> words, ds_words;
  Stored<width> stored;
};

/// dk and dv of a tile of keys, `at.head` being k's, from dots. Rows are keys here, columns
/// queries. `shared`: Backward::shared_bytes.
template <class Kind, int width, class T, class Team>
BATON_DEVICE void key_gradient_unit(Team& team, const Attention<T>& of, const Tile& at,
                                    Chunk* shared) {
  using State = KeyGradientState<Kind, width>;
  using Sizes = Backward<Kind, width>;
  constexpr int columns = Sizes::columns;
  Chunk *const keys = shared, *const values = keys + Sizes::held,
               *const others = values + Sizes::held;
  const auto queries = [&](int stage) { return others + stage * 2 * Sizes::passed; };
  const auto gradients = [&](int stage) { return queries(stage) + Sizes::passed; };
  const auto log_sums = [&](int stage) {
    return reinterpret_cast<float*>(shared + Sizes::shared_chunks) + stage * 2 * columns;
  };
  const auto dots = [&](int stage) { return log_sums(stage) + columns; };
  const auto hold = [&] {
    start_tile<Kind, width, Sizes::rows>(team, 0, of, Source::k, at, keys);
    start_tile<Kind, width, Sizes::rows>(team, 0, of, Source::v, at, values);
  };
  team.run([&](int, State& state) {
    clear<1, width>(state.dk);
    clear<1, width>(state.dv);
  });
  // The tiles of queries that see these keys, of one head after another.
  const std::int64_t each = of.heads / of.key_heads, first = of.causal ? at.begin / columns : 0;
  const std::int64_t end = (of.queries + columns - 1) / columns;
  const std::int64_t tiles = end > first ? end - first : 0;
  Tile next{at.sample, at.head * each, first * columns}, here = next;
  const auto go_on = [&](Tile& tile) {
    if ((tile.begin += columns) >= of.queries) tile.begin = first * columns, ++tile.head;
  };
  const auto load = [&](std::int64_t, int stage) {
    start_tile<Kind, width, columns>(team, stage, of, Source::q, next, queries(stage));
    start_tile<Kind, width, columns>(team, stage, of, Source::dout, next, gradients(stage));
    team.run([&](int thread, State&) {
      if (thread >= columns) return;
      // Of a row that is not there, q and dout are 0, and so is what is added.
      const bool there = next.begin + thread < of.queries;
      const std::int64_t row = there ? of.row(at.sample, next.head, next.begin + thread) : 0;
      copy_float(log_sums(stage) + thread, of.result_log_sums + row, there);
      copy_float(dots(stage) + thread, of.dots + row, there);
    });
    go_on(next);
  };
  const auto scores = [](auto& state) -> auto& { return state.s; };
  const auto gradients_of_scores = [](auto& state) -> auto& { return state.ds; };
  const auto dv = [](auto& state) -> auto& { return state.dv; };
  const auto dk = [](auto& state) -> auto& { return state.dk; };
  const float scale = of.scale * log2_of_e;
  pass_by<Kind, Sizes::stages>(
      team, tiles * each, hold, load, [&](std::int64_t, int stage, auto next_tiles) {
        const std::int64_t begin = here.begin;
        if constexpr (!Kind::by_warpgroups) next_tiles();
        score<Kind, width, 1, columns>(team, keys, queries(stage), scores);
        score<Kind, width, 1, columns>(team, values, gradients(stage), gradients_of_scores);
        if constexpr (Kind::by_warpgroups) next_tiles();  // beside the products
        await_products<Kind, 1>(team, scores);
        const bool all_visible = at.begin + Sizes::rows <= of.keys &&
                                 (!of.causal || at.begin + Sizes::rows <= begin + 1);
        team.run([&](int thread, State& state) {
          BATON_UNROLL
          for (int n = 0; n < columns / 8; ++n) BATON_UNROLL
          for (int i = 0; i < 2; ++i) {
            const int column = column_of(thread, n, i);
            const float log_sum = log_sums(stage)[column] * log2_of_e;
            BATON_UNROLL
            for (int half = 0; half < 2; ++half) {
              float& p = state.s[0][n][half * 2 + i];
              p = power_of_two(p * scale - log_sum);
            }
          }
          if (!all_visible) {
            BATON_UNROLL
            for (int half = 0; half < 2; ++half) {
              const int blind =
                  of.blind_queries(at.begin + row_of(thread, 0, half), begin, columns);
              BATON_UNROLL
              for (int n = 0; n < columns / 8; ++n) BATON_UNROLL
              for (int i = 0; i < 2; ++i)
                if (column_of(thread, n, i) < blind) state.s[0][n][half * 2 + i] = 0;
            }
          }
        });
        await_products<Kind, 0>(team, gradients_of_scores);
        team.run([&](int thread, State& state) {
          const auto finish = [&](int n, int i, float factor) {
            float &p = state.s[0][n][i], &ds = state.ds[0][n][i];
            ds = p * (ds * factor - dots(stage)[column_of(thread, n, i % 2)]);
            p *= factor;
          };
          if (of.drops) {
            each_factor_of_keys<columns>(thread, 0, of, at.sample, here.head, begin, at.begin,
                                         finish);
          } else {
            BATON_UNROLL
            for (int n = 0; n < columns / 8; ++n) BATON_UNROLL
            for (int i = 0; i < 4; ++i) finish(n, i, 1);
          }
        });
        accumulate<Kind, width, 1, columns>(
            team, scores, [](auto& state) -> auto& { return state.words; }, gradients(stage), dv);
        accumulate<Kind, width, 1, columns>(
            team, gradients_of_scores, [](auto& state) -> auto& { return state.ds_words; },
            queries(stage), dk);
        await_products<Kind, 0>(team, dv);
        await_products<Kind, 0>(team, dk);
        go_on(here);
      });
  const auto store_results = [&](auto gradients_of, const Heads<T>& to, float factor) {
    store_rows<Kind, width>(
        team, of, gradients_of, 0, [=](const State&, int) { return factor; },
        [&](int thread, int half) -> T* {
          const std::int64_t key = at.begin + row_of(thread, 0, half);
          return key < of.keys ? to.at(at.sample, at.head, key) : nullptr;
        });
  };
  store_results(dk, of.dk, of.scale);
  store_results(dv, of.dv, 1);
}

}  // namespace baton::transformer::cuda
