#pragma once
/// Tiles of queries and keys that lie in shared memory.

#include <cstring>

#include "element.hpp"
#include "factors.hpp"
#include "philox.hpp"
#include "team.hpp"

namespace baton::transformer::cuda {

/// Columns of a tile for heads of up to so many elements; wider ones take largest_head.
inline constexpr int narrow_head = 64;
/// Of a head, at most.
inline constexpr int largest_head = 128;
inline constexpr int warps = 4;  ///< of a thread block of attention
inline constexpr int attention_threads = 32 * warps;

/// Elements of a chunk.
template <class T>
inline constexpr int chunk_elements = static_cast<int>(sizeof(Chunk) / sizeof(T));
/// Chunks of a tile's row.
template <class Kind, int width>
inline constexpr int chunks = width / chunk_elements<typename Kind::Element>;
/// Rows of the tiles that pass by, as others' columns: fewer where a row is long.
template <class Kind, int width>
inline constexpr int passing = width * sizeof(typename Kind::Element) > 256 ? 32 : 64;

/// [sample, position, head, size] with contiguous rows of `size`.
template <class T>
struct Heads {
  T* data = nullptr;
  std::int64_t sample = 0, position = 0, head = 0;  ///< strides, in elements
  BATON_DEVICE T* at(std::int64_t s, std::int64_t h, std::int64_t p) const {
    return data + s * sample + h * head + p * position;
  }
};

/// The tensors that tiles are of.
enum class Source { q, k, v, dout };

/// The arguments that forward and backward share. Backward uses dots [samples, heads, queries] as
/// scratch.
template <class T>
struct Attention {
  std::int64_t samples = 0, queries = 0, keys = 0, heads = 0, key_heads = 0;
  int size = 0;  ///< of a head
  float scale = 1;
  bool causal = false;
  bool whole_chunks = false;  ///< all rows are aligned to chunks, and consist of them
  bool tf32 = false;          ///< products of f32 round their factors to tf32
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

  BATON_DEVICE const Heads<const T>& tensor(Source which) const {
    return which == Source::q ? q : which == Source::k ? k : which == Source::v ? v : dout;
  }
  static BATON_DEVICE bool by_queries(Source which) {
    return which == Source::q || which == Source::dout;
  }
  BATON_DEVICE std::int64_t positions(Source which) const {
    return by_queries(which) ? queries : keys;
  }
  BATON_DEVICE std::int64_t head_count(Source which) const {
    return by_queries(which) ? heads : key_heads;
  }
  BATON_DEVICE std::int64_t row(std::int64_t sample, std::int64_t head, std::int64_t query) const {
    return (sample * heads + head) * queries + query;
  }
  /// How many of `columns` keys from `key` on a query sees.
  BATON_DEVICE int visible_keys(std::int64_t query, std::int64_t key, int columns) const {
    const std::int64_t seen = (causal && query < keys ? query + 1 : keys) - key;
    return seen < 0 ? 0 : seen < columns ? static_cast<int>(seen) : columns;
  }
  /// Of `columns` queries from `query` on, how many come before the first that sees a key.
  BATON_DEVICE int blind_queries(std::int64_t key, std::int64_t query, int columns) const {
    const std::int64_t blind = key < keys ? (causal ? key - query : 0) : columns;
    return blind < 0 ? 0 : blind < columns ? static_cast<int>(blind) : columns;
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

// --- tiles in shared memory ----------------------------------------------------------------------

/// Where a chunk lies in a tile of `row_chunks` chunks a row: `row` is 0 to 7 more than `eights`, a
/// multiple of 8. The chunks of a row are so turned that threads which read one of eight rows, or
/// two of every other row, meet no bank twice.
template <int row_chunks>
BATON_DEVICE int slot(int eights, int row, int chunk) {
  return (eights + row) * row_chunks + (chunk ^ row);
}

/// The same in a tile of `rows` rows. A warpgroup takes tiles as panels of 8 chunks a row, one
/// behind the other: PTX's swizzle of 128 bytes.
template <class Kind, int width, int rows>
BATON_DEVICE int place_in_tile(int eights, int row, int chunk) {
  if constexpr (Kind::by_warpgroups) {
    return slot<8>(chunk / 8 * rows + eights, row, chunk % 8);
  } else {
    return slot<chunks<Kind, width>>(eights, row, chunk);
  }
}

/// Copies `bytes` of a chunk, 0 to 16, and zeros behind them. On devices it goes on beside the
/// thread, until wait_for_copies().
BATON_DEVICE void copy_chunk(Chunk* to, const void* from, int bytes) {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(bytes)
               : "memory");
#else
  *to = {};
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
#endif
}
/// Returns when the thread's copies are done. After a barrier, other threads and products see them;
/// not those that TMA makes.
template <class Kind>
BATON_DEVICE void wait_for_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_all;" ::: "memory");
  if constexpr (Kind::by_warpgroups && !Kind::by_tma)
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/// The same of a float, or 0 if it is not there.
BATON_DEVICE void copy_float(float* to, const float* from, bool there) {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(there ? 4 : 0)
               : "memory");
#else
  *to = there ? *from : 0;
#endif
}

/// Elements, rounded, as a chunk.
template <class T>
BATON_DEVICE Chunk chunk_of(const float (&values)[chunk_elements<T>]) {
  Chunk chunk;
  BATON_UNROLL
  for (int w = 0; w < 4; ++w) {
    if constexpr (sizeof(T) == 4) {
      chunk.word[w] = as_word(values[w]);
    } else {
      chunk.word[w] = pair_of(values[2 * w], values[2 * w + 1]);
    }
  }
  return chunk;
}
/// `count` elements, at most a chunk's, as a chunk with zeros behind them.
template <class T>
BATON_DEVICE Chunk gathered(const T* from, int count) {
  float values[chunk_elements<T>];
  BATON_UNROLL
  for (int e = 0; e < chunk_elements<T>; ++e) values[e] = e < count ? load(from + e) : 0;
  return chunk_of<T>(values);
}
/// The elements of a chunk.
template <class T>
BATON_DEVICE void widen(const Chunk& chunk, float (&values)[chunk_elements<T>]) {
  BATON_UNROLL
  for (int w = 0; w < 4; ++w) {
    if constexpr (sizeof(T) == 4) {
      values[w] = as_float(chunk.word[w]);
    } else {
      values[2 * w] = as_float(chunk.word[w] << 16);
      values[2 * w + 1] = as_float(chunk.word[w] & 0xffff0000);
    }
  }
}

/// The same of a row's elements, of which `count` are left from here on.
template <class T>
BATON_DEVICE void widen_from(const Attention<T>& of, const T* from, int count,
                             float (&values)[chunk_elements<T>]) {
  widen<T>(of.whole_chunks ? *reinterpret_cast<const Chunk*>(from) : gathered(from, count), values);
}

/// Starts to copy `rows` rows, of which the tensor has `there`, and zeros beyond.
template <class Kind, int width, int rows, class T>
BATON_DEVICE void load_tile(int thread, const T* from, std::int64_t stride, std::int64_t there,
                            const Attention<T>& of, Chunk* to) {
  constexpr int across = chunks<Kind, width>, elements = chunk_elements<T>;
  constexpr int step = attention_threads / across;  // rows that all threads take at a time
  const int chunk = thread % across, first = thread / across, left = of.size - chunk * elements;
  const int count = left < 0 ? 0 : left < elements ? left : elements;
  const T* at = from + first * stride + (count > 0 ? chunk * elements : 0);
  const auto place = [&](int row) {
    return to + place_in_tile<Kind, width, rows>(row / 8 * 8, row % 8, chunk);
  };
  if (of.whole_chunks && there >= rows) {  // what most tiles are
    BATON_UNROLL
    for (int row = 0; row < rows; row += step, at += step * stride)
      copy_chunk(place(first + row), at, count * static_cast<int>(sizeof(T)));
    return;
  }
  for (int row = first; row < rows; row += step, at += step * stride) {
    const int some = row < there ? count : 0;
    if (of.whole_chunks) {
      copy_chunk(place(row), some > 0 ? at : from, some * static_cast<int>(sizeof(T)));
    } else {
      *place(row) = gathered(at, some);
    }
  }
}

/// All threads start to copy a tile of `rows` rows, and zeros beyond the tensor. It is there after
/// wait_for_copies() and a barrier, or, by TMA, after finish_tiles() and await_tiles().
template <class Kind, int width, int rows, class Team, class T>
BATON_DEVICE void start_tile(Team& team, int stage, const Attention<T>& of, Source which,
                             const Tile& at, Chunk* to) {
  const auto load = [&of, which, at, to](int thread) {
    const Heads<const T>& from = of.tensor(which);
    load_tile<Kind, width, rows>(thread, from.at(at.sample, at.head, at.begin), from.position,
                                 of.positions(which) - at.begin, of, to);
  };
  if constexpr (Kind::by_tma) {
    team.template copy<width, rows>(stage, which, at, to, load);
  } else {
    team.run([&](int thread, auto&) { load(thread); });
  }
}
/// No more tiles are started for this stage.
template <class Kind, class Team>
BATON_DEVICE void finish_tiles(Team& team, int stage) {
  if constexpr (Kind::by_tma) team.finish_copies(stage);
}
/// Returns when a stage's tiles are there.
template <class Kind, class Team>
BATON_DEVICE void await_tiles(Team& team, int stage) {
  if constexpr (Kind::by_tma) team.await_copies(stage);
}

}  // namespace baton::transformer::cuda
