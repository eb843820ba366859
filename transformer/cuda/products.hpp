#pragma once
/// Products of tiles by tensor cores, and a thread's part of them.

#include <cmath>

#include "wgmma_factors.hpp"

namespace baton::transformer::cuda {

// A warp has 16 rows of each of `blocks` blocks. Of those, a thread has `group` and `group` + 8,
// and of 8 columns 2 · `place` and the next.

BATON_DEVICE int group_of(int thread) { return thread % 32 / 4; }
BATON_DEVICE int place_of(int thread) { return thread % 4; }
BATON_DEVICE int row_of(int thread, int block, int half) {
  return (block * warps + thread / 32) * 16 + half * 8 + group_of(thread);
}
BATON_DEVICE int column_of(int thread, int eight, int i) {
  return eight * 8 + place_of(thread) * 2 + i;
}

/// A thread's sums of `blocks` blocks and `columns` columns: of its first row, then its second.
template <int blocks, int columns>
using Sums = float[blocks][columns / 8][4];
/// A thread's results for its rows, of `width` columns: see store_row().
template <int blocks, int width>
using Results = Sums<blocks, width>;

/// Factors on their way from shared memory to a tensor core, each in its parts.
template <int blocks>
struct Factors {
  Chunk rows[2][blocks][2];  // [part][block][step]
  Chunk columns[2][4];
};

/// Factors of a warpgroup's products: a thread's sums, rounded, of each 16 columns.
template <int blocks, int columns>
using Rounded = Chunk[blocks][columns / 16];

template <int blocks, int columns>
BATON_DEVICE void clear(Sums<blocks, columns>& sums) {
  BATON_UNROLL
  for (int b = 0; b < blocks; ++b) BATON_UNROLL
  for (int n = 0; n < columns / 8; ++n) BATON_UNROLL
  for (int i = 0; i < 4; ++i) sums[b][n][i] = 0;
}

/// Splits a chunk into its parts.
template <class Kind>
BATON_DEVICE void split(const Chunk& chunk, Chunk& high, Chunk& low) {
  BATON_UNROLL
  for (int w = 0; w < 4; ++w) high.word[w] = Kind::split(chunk.word[w], low.word[w]);
}

/// sum(state) += rows(state, part) · columns(state, part), the least products first.
template <class Kind, class Team, class Sum, class A, class B>
BATON_DEVICE void multiply(Team& team, Sum sum, A rows, B columns) {
  const auto part = [&](int of_rows, int of_columns) {
    team.template mma<Kind>(
        sum, [&](const auto& state) { return rows(state, of_rows); },
        [&](const auto& state) { return columns(state, of_columns); });
  };
  if constexpr (Kind::parts == 2) part(1, 0), part(0, 1);
  part(0, 0);
}

/// The words of a thread's sums of 16 columns, rounded to bf16.
BATON_DEVICE Chunk rounded(const float (&first)[4], const float (&second)[4]) {
  return {{pair_of(first[0], first[1]), pair_of(first[2], first[3]), pair_of(second[0], second[1]),
           pair_of(second[2], second[3])}};
}

/// Returns when all products but those of the last `pending` calls of score() and accumulate() are
/// done, those of `sums` among them.
template <class Kind, int pending, class Team, class Sums>
BATON_DEVICE void await_products(Team& team, Sums sums) {
  if constexpr (Kind::by_warpgroups) team.template await_products<pending>(sums);
}

/// sums(state) = a · bᵀ, of a warp's rows of the tile a, and all rows of b. Two chunks of a row
/// make a step of the tensor cores. Ends with await_products().
template <class Kind, int width, int blocks, int columns, class Team, class SumsOf>
requires(!Kind::by_warpgroups) BATON_DEVICE
    void score(Team& team, const Chunk* a, const Chunk* b, SumsOf sums) {
  constexpr int across = chunks<Kind, width>;
  team.run([&](int, auto& state) { clear<blocks, columns>(sums(state)); });
  BATON_UNROLL
  for (int chunk = 0; chunk < across; chunk += 4) {
    BATON_UNROLL
    for (int m = 0; m < blocks; ++m) BATON_UNROLL
    for (int step = 0; step < 2; ++step) {
      team.load_matrices(
          [&](int thread) {
            const int matrix = thread / 8 % 4;  // the lower rows, the upper ones, the next chunk
            const int eights = (m * warps + thread / 32) * 16 + matrix % 2 * 8;
            return a + slot<across>(eights, thread % 8, chunk + step * 2 + matrix / 2);
          },
          [&](auto& state) -> Chunk& { return state.factors.rows[0][m][step]; });
      team.run([&](int, auto& state) {
        auto& rows = state.factors.rows;
        split<Kind>(rows[0][m][step], rows[0][m][step], rows[1][m][step]);
      });
    }
    BATON_UNROLL
    for (int n = 0; n < columns / 8; ++n) {
      team.load_matrices(
          [&](int thread) { return b + slot<across>(n * 8, thread % 8, chunk + thread / 8 % 4); },
          [&](auto& state) -> Chunk& { return state.factors.columns[0][0]; });
      team.run([&](int, auto& state) {
        auto& words = state.factors.columns;
        split<Kind>(words[0][0], words[0][0], words[1][0]);
      });
      BATON_UNROLL
      for (int step = 0; step < 2; ++step) BATON_UNROLL
      for (int m = 0; m < blocks; ++m) {
        multiply<Kind>(
            team, [&](auto& state) -> float(&)[4] { return sums(state)[m][n]; },
            [&](const auto& state, int part) { return state.factors.rows[part][m][step]; },
            [&](const auto& state, int part) {
              const Chunk& words = state.factors.columns[part][0];
              return TwoWords{{words.word[2 * step], words.word[2 * step + 1]}};
            });
      }
    }
  }
}

/// The same by warpgroups, of one block.
template <class Kind, int width, int blocks, int columns, class Team, class SumsOf>
requires(Kind::by_warpgroups) BATON_DEVICE
    void score(Team& team, const Chunk* a, const Chunk* b, SumsOf sums, int block = 0) {
  team.begin_products();
  BATON_UNROLL
  for (int step = 0; step < chunks<Kind, width> / 2; ++step) {
    team.product(
        [=](auto& state) -> auto& { return sums(state)[block]; },
        Across<blocks * 64>{a, block * 64, step}, Across<columns>{b, 0, step}, step > 0);
  }
  team.end_products();
}

/// results(state) += p · b, of p [rows, columns] as score() leaves it, and the tile b of `columns`
/// rows. A thread takes the chunks `group`, `group` + 8, ... of the rows that its sums belong to,
/// and each element is a column of another 8 of the results.
template <class Kind, int width, int blocks, int columns, class Team, class SumsOf, class WordsOf,
          class ResultsOf>
requires(!Kind::by_warpgroups) BATON_DEVICE
    void accumulate(Team& team, SumsOf p, WordsOf, const Chunk* b, ResultsOf results) {
  using T = typename Kind::Element;
  constexpr int across = chunks<Kind, width>, elements = chunk_elements<T>;
  constexpr bool pairs = sizeof(T) == 2;
  BATON_UNROLL
  for (int n = 0; n < columns / 8; n += pairs ? 2 : 1) {
    team.run([&](int, auto& state) {
      BATON_UNROLL
      for (int m = 0; m < blocks; ++m) {
        const auto& s = p(state)[m];
        Chunk words;
        if constexpr (pairs) {
          words = rounded(s[n], s[n + 1]);
        } else {
          words = {{as_word(s[n][0]), as_word(s[n][2]), as_word(s[n][1]), as_word(s[n][3])}};
        }
        split<Kind>(words, state.factors.rows[0][m][0], state.factors.rows[1][m][0]);
      }
    });
    BATON_UNROLL
    for (int chunk = 0; chunk < across; chunk += 8) {
      team.run([&](int thread, auto& state) {
        BATON_UNROLL
        for (int r = 0; r < (pairs ? 4 : 2); ++r)
          split<Kind>(b[slot<across>(n * 8 + r / 2 * 8, place_of(thread) * 2 + r % 2,
                                     chunk + group_of(thread))],
                      state.factors.columns[0][r], state.factors.columns[1][r]);
      });
      BATON_UNROLL
      for (int e = 0; e < elements; ++e) BATON_UNROLL
      for (int m = 0; m < blocks; ++m) {
        multiply<Kind>(
            team,
            [&](auto& state) -> float(&)[4] { return results(state)[m][chunk / 8 * elements + e]; },
            [&](const auto& state, int part) { return state.factors.rows[part][m][0]; },
            [&](const auto& state, int part) {
              const auto& rows = state.factors.columns[part];
              if constexpr (!pairs) {
                return TwoWords{{rows[0].word[e], rows[1].word[e]}};
              } else if (e % 2 == 0) {
                return TwoWords{{pair_of_words<false>(rows[0].word[e / 2], rows[1].word[e / 2]),
                                 pair_of_words<false>(rows[2].word[e / 2], rows[3].word[e / 2])}};
              } else {
                return TwoWords{{pair_of_words<true>(rows[0].word[e / 2], rows[1].word[e / 2]),
                                 pair_of_words<true>(rows[2].word[e / 2], rows[3].word[e / 2])}};
              }
            });
      }
    }
  }
}

/// The same by warpgroups, of one block, by way of words(state). Results are in the order of
/// columns. Ends with await_products().
template <class Kind, int width, int blocks, int columns, class Team, class SumsOf, class WordsOf,
          class ResultsOf>
requires(Kind::by_warpgroups) BATON_DEVICE
    void accumulate(Team& team, SumsOf p, WordsOf words, const Chunk* b, ResultsOf results,
                    int block = 0) {
  team.run([&](int, auto& state) {
    BATON_UNROLL
    for (int step = 0; step < columns / 16; ++step)
      words(state)[block][step] = rounded(p(state)[block][2 * step], p(state)[block][2 * step + 1]);
  });
  team.begin_products();
  BATON_UNROLL
  for (int step = 0; step < columns / 16; ++step) {
    team.product(
        [=](auto& state) -> auto& { return results(state)[block]; },
        [=](auto& state) -> auto& { return words(state)[block][step]; }, Down<columns>{b, step},
        true);
  }
  team.end_products();
}

/// Stores a chunk of a row from `column` on, but nothing beyond the row.
template <class T>
BATON_DEVICE void store_chunk(const Attention<T>& of, const Chunk& chunk, int column, T* to) {
  if (of.whole_chunks) {
    if (column < of.size) *reinterpret_cast<Chunk*>(to + column) = chunk;
    return;
  }
  float values[chunk_elements<T>];
  widen<T>(chunk, values);
  BATON_UNROLL
  for (int e = 0; e < chunk_elements<T>; ++e)
    if (column + e < of.size) store(to + column + e, values[e]);
}

/// A step of the transposition of four threads' words: those of the upper places give the lower
/// word of each two for the upper one of the others.
template <int offset, int width, class Team>
BATON_DEVICE void exchange(Team& team) {
  const auto upper = [](int thread) { return (place_of(thread) & offset) != 0; };
  BATON_UNROLL
  for (int i = 0; i < width / 32; ++i) BATON_UNROLL
  for (int w = 0; w < 4; ++w) {
    if ((w & offset) != 0) continue;
    team.template swap<offset>(
        [=](int thread, const auto& state) {
          const Chunk& chunk = state.stored[i];
          return upper(thread) ? chunk.word[w] : chunk.word[w | offset];
        },
        [=](int thread, auto& state, std::uint32_t word) {
          Chunk& chunk = state.stored[i];
          if (upper(thread)) {
            chunk.word[w] = word;
          } else {
            chunk.word[w | offset] = word;
          }
        });
  }
}

/// Stores a thread's results of one row, times `factor`: of each 8 chunks, chunk 2 · `place` and
/// the next.
template <class Kind, int width, class T>
BATON_DEVICE void store_row(int thread, const Attention<T>& of,
                            const float (&results)[width / 8][4], int half, float factor, T* to) {
  constexpr int elements = chunk_elements<T>;
  BATON_UNROLL
  for (int chunk = 0; chunk < chunks<Kind, width>; chunk += 8) BATON_UNROLL
  for (int next = 0; next < 2; ++next) {
    const int column = (chunk + place_of(thread) * 2 + next) * elements;
    float values[elements];
    BATON_UNROLL
    for (int e = 0; e < elements; ++e)
      values[e] = results[chunk / 8 * elements + e][half * 2 + next] * factor;
    store_chunk(of, chunk_of<T>(values), column, to);
  }
}

/// Results of one row on their way to memory.
template <int width>
using Stored = Chunk[width / 32];

/// Stores all threads' results of a block, row(thread, half) + columns, times factor(state, half);
/// not where row() is null. By warpgroups, four threads have two elements each of every chunk of
/// their rows: of each four chunks, a thread collects one.
template <class Kind, int width, class Team, class T, class ResultsOf, class FactorOf, class RowOf>
BATON_DEVICE void store_rows(Team& team, const Attention<T>& of, ResultsOf results, int block,
                             FactorOf factor, RowOf row) {
  BATON_UNROLL
  for (int half = 0; half < 2; ++half) {
    if constexpr (Kind::by_warpgroups) {
      team.run([&](int, auto& state) {
        const float by = factor(state, half);
        BATON_UNROLL
        for (int n = 0; n < width / 8; ++n) {
          const auto& pair = results(state)[block][n];
          state.stored[n / 4].word[n % 4] = pair_of(pair[half * 2] * by, pair[half * 2 + 1] * by);
        }
      });
      exchange<1, width>(team);
      exchange<2, width>(team);
      team.run([&](int thread, auto& state) {
        T* const to = row(thread, half);
        if (!to) return;
        BATON_UNROLL
        for (int i = 0; i < width / 32; ++i) {
          const int column = (i * 4 + place_of(thread)) * chunk_elements<T>;
          store_chunk(of, state.stored[i], column, to);
        }
      });
    } else {
      team.run([&](int thread, auto& state) {
        if (T* const to = row(thread, half))
          store_row<Kind, width>(thread, of, results(state)[block], half, factor(state, half), to);
      });
    }
  }
}

/// Calls body(eight, i, factor) with dropout's factor of each of a thread's scores of a block, rows
/// being queries from `query` on, columns keys from `key` on.
template <int columns, class T, class Body>
BATON_DEVICE void each_factor(int thread, int block, const Attention<T>& of, std::int64_t sample,
                              std::int64_t head, std::int64_t query, std::int64_t key, Body body) {
  const int quad = place_of(thread) / 2 * 4;
  const bool second = place_of(thread) % 2 != 0;
  BATON_UNROLL
  for (int half = 0; half < 2; ++half) BATON_UNROLL
  for (int n = 0; n < columns / 8; ++n) {
    float factors[4];
    of.factors(sample, head, query + row_of(thread, block, half), key + n * 8 + quad, factors);
    // By comparisons: an index would put the factors into memory.
    body(n, half * 2, second ? factors[2] : factors[0]);
    body(n, half * 2 + 1, second ? factors[3] : factors[1]);
  }
}
/// The same where rows are keys and columns are queries.
template <int columns, class T, class Body>
BATON_DEVICE void each_factor_of_keys(int thread, int block, const Attention<T>& of,
                                      std::int64_t sample, std::int64_t head, std::int64_t query,
                                      std::int64_t key, Body body) {
  const int which = group_of(thread) % 4;
  BATON_UNROLL
  for (int half = 0; half < 2; ++half) BATON_UNROLL
  for (int n = 0; n < columns / 8; ++n) BATON_UNROLL
  for (int i = 0; i < 2; ++i) {
    float factors[4];
    of.factors(sample, head, query + column_of(thread, n, i),
               key + row_of(thread, block, half) - which, factors);
    const float low = which & 1 ? factors[1] : factors[0];
    const float high = which & 1 ? factors[3] : factors[2];
    body(n, half * 2 + i, which & 2 ? high : low);
  }
}

}  // namespace baton::transformer::cuda
