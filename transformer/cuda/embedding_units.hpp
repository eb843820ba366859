#pragma once
/// Embeddings: what a thread block or a thread does. Sums are in f32, in the order of places.

#include "element.hpp"
#include "team.hpp"

namespace baton::transformer::cuda {

template <class T>
struct Table {
  std::int64_t count, rows, d, first;
  const std::int32_t* ids;  ///< [count]; those outside of [first, first + rows) are others'
  BATON_DEVICE std::int64_t row_of(std::int64_t i) const {
    const std::int64_t row = ids[i] - first;
    return row >= 0 && row < rows ? row : -1;
  }
};

/// y [count, d]: the element of this index.
template <class T>
BATON_DEVICE void embedding_unit(const Table<T>& of, std::int64_t index, const T* table, T* y) {
  const std::int64_t i = index / of.d, row = of.row_of(i);
  store(y + index, row < 0 ? 0 : load(table + row * of.d + (index - i * of.d)));
}

/// Places of the same id, in order: `next` [count], the place after each or -1; `heads` [count],
/// whether none is before it and the id is in the table.
struct Chains {
  std::int32_t *next, *heads;
  std::int32_t* last;  ///< [rows]: the last place so far, or -1
};
/// For `count` ids and a table of `rows`.
inline std::int64_t chains_size(std::int64_t count, std::int64_t rows) { return 2 * count + rows; }
inline Chains chains_in(std::int32_t* scratch, std::int64_t count) {
  return {scratch, scratch + count, scratch + 2 * count};
}
struct ChainState {
  bool last;  ///< whether none of the places here that come later has the same id
};
/// By one thread block, in time linear in `count`: links places within as many as there are threads
/// by comparing each with each, and these with what is before through `last`. rows_here [threads].
template <class T, class Team>
BATON_DEVICE void chain_unit(Team& team, const Table<T>& of, const Chains& chains,
                             std::int32_t* rows_here) {
  team.step([&](int thread, ChainState&) {
    for (std::int64_t row = thread; row < of.rows; row += threads) chains.last[row] = -1;
  });
  for (std::int64_t begin = 0; begin < of.count; begin += threads) {
    team.step([&](int thread, ChainState&) {
      const std::int64_t i = begin + thread;
      rows_here[thread] = i < of.count ? static_cast<std::int32_t>(of.row_of(i)) : -1;
      if (i < of.count) chains.next[i] = -1, chains.heads[i] = 0;
    });
    team.step([&](int thread, ChainState& state) {
      const std::int32_t row = rows_here[thread];
      state.last = row >= 0;
      if (row < 0) return;
      int near = -1;
      for (int other = 0; other < threads; ++other) {
        const bool same = rows_here[other] == row;
        if (same && other < thread) near = other;
        if (same && other > thread) state.last = false;
      }
      const std::int64_t before = near >= 0 ? begin + near : chains.last[row];
      chains.heads[begin + thread] = before < 0;
      if (before >= 0) chains.next[before] = static_cast<std::int32_t>(begin + thread);
    });
    team.step([&](int thread, ChainState& state) {
      if (state.last) chains.last[rows_here[thread]] = static_cast<std::int32_t>(begin + thread);
    });
  }
}
/// Adds to a column of the table's row of id i, if it comes there first, all of its gradients.
template <class T>
BATON_DEVICE void embedding_backward_unit(const Table<T>& of, std::int64_t i, std::int64_t column,
                                          const Chains& chains, const T* dy, T* dtable) {
  if (!chains.heads[i]) return;
  T* const to = dtable + of.row_of(i) * of.d + column;
  float sum = load(to);
  for (std::int64_t at = i; at >= 0; at = chains.next[at]) sum += load(dy + at * of.d + column);
  store(to, sum);
}

}  // namespace baton::transformer::cuda
