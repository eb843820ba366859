#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels.hpp"
#include "on_host.hpp"

namespace baton::transformer::ops {
namespace {

/// Queries [begin, end) of one sample and head, with some of the keys that any of them sees.
struct Tile {
  std::int64_t sample, head, begin, end, key_begin, key_end;
  bool last;  ///< of these queries'
  std::int64_t queries() const { return end - begin; }
  std::int64_t keys() const { return key_end - key_begin; }
  bool first() const { return key_begin == 0; }
};

/// The part that forward and backward share: shapes, tiles, and which probabilities are dropped.
template <class T>
class Tiling {
 public:
  Tiling(View<const T> q, View<const T> k, const AttentionOptions& options)
      : options_(options),
        samples_(q.extent(0)),
        queries_(q.extent(1)),
        heads_(q.extent(2)),
        keys_(k.extent(1)),
        key_heads_(k.extent(2)) {}

  std::int64_t samples() const { return samples_; }
  std::int64_t key_heads() const { return key_heads_; }
  std::int64_t heads_each() const { return heads_ / key_heads_; }
  bool drops() const { return options_.dropout.p > 0; }

  static constexpr std::int64_t widest = 256;  ///< keys of a tile
  /// Of a tile: so few that caches keep two of scores, but products that are not small.
  std::int64_t height() const { return std::min<std::int64_t>(128, queries_); }
  std::int64_t width() const { return std::min<std::int64_t>(widest, keys_); }
  Array<T> scratch() const { return Array<T>::uninitialized({height(), width()}); }

  /// Of the same queries, one after the other.
  template <class Body>
  void each_tile(std::int64_t sample, std::int64_t head, Body body) const {
    for (std::int64_t begin = 0; begin < queries_; begin += height()) {
      const std::int64_t end = std::min(begin + height(), queries_);
      const std::int64_t keys = options_.causal ? end : keys_;
      for (std::int64_t key = 0; key < keys; key += width()) {
        const std::int64_t key_end = std::min(key + width(), keys);
        body(Tile{sample, head, begin, end, key, key_end, key_end == keys});
        if (options_.meanwhile) options_.meanwhile();
      }
    }
  }
  /// Keys of a tile that a query of it sees: the first so many.
  std::int64_t seen(const Tile& tile, std::int64_t query) const {
    if (!options_.causal) return tile.keys();
    return std::clamp<std::int64_t>(tile.begin + query + 1 - tile.key_begin, 0, tile.keys());
  }
  /// Drops and scales what stands for probabilities of a tile.
  void drop(const Tile& tile, View<T> probabilities) const {
    Dropout dropout = options_.dropout;
    dropout.piece.first[0] += tile.sample;
    dropout.piece.first[1] += tile.head;
    dropout.piece.first[2] += tile.begin;
    dropout.piece.first[3] += tile.key_begin;
    dropout.apply(probabilities.reshaped({1, 1, tile.queries(), tile.keys()}));
  }

 private:
  const AttentionOptions& options_;
  std::int64_t samples_, queries_, heads_, keys_, key_heads_;
};

/// [s, d] of one sample and head.
template <class T>
View<T> matrix(View<T> x, std::int64_t sample, std::int64_t head) {
  return x.select(0, sample).select(1, head);
}

/// c = factor · a · b, or that added to c.
template <class T>
void product(T factor, View<const std::type_identity_t<T>> a, View<const std::type_identity_t<T>> b,
             bool add, View<T> c) {
  kernels<ProductKernels<T>>().product({c.extent(0), c.extent(1), a.extent(1), factor, a.data(),
                                        a.stride(0), a.stride(1), b.data(), b.stride(0), add,
                                        c.data(), c.stride(0)});
}

/// One head's keys or values, arranged for the products that read them again and again.
template <class T>
struct Arranged {
  static constexpr std::int64_t panel = 64;  ///< columns, which a product passes over again
  Array<T> rows, columns;                    ///< [t, d], and [panels, d, panel]
  static_assert(Tiling<T>::widest % panel == 0, "tiles begin with a panel");

  explicit Arranged(View<const T> x) : rows(Array<T>::copy_of(x)) {
    constexpr std::int64_t line = 64 / sizeof(T);
    const std::int64_t n = x.extent(0), size = x.extent(1);
    columns = Array<T>::uninitialized({(n + panel - 1) / panel, size, panel});
    for (std::int64_t begin = 0; begin < n; begin += line)  // so that lines are written whole
      for (std::int64_t d = 0; d < size; ++d)
        for (std::int64_t i = begin; i < std::min(begin + line, n); ++i)
          columns.data()[(i / panel * size + d) * panel + i % panel] = rows.data()[i * size + d];
  }
  View<const T> rows_of(const Tile& tile) const {
    return View<const T>(rows).slice(0, tile.key_begin, tile.key_end);
  }
  /// c = factor · a · columns of the tile.
  void times_columns(T factor, View<const T> a, const Tile& tile, View<T> c) const {
    for (std::int64_t begin = 0; begin < tile.keys(); begin += panel) {
      const std::int64_t end = std::min(begin + panel, tile.keys());
      const View<const T> whole = columns.view().select(0, (tile.key_begin + begin) / panel);
      product<T>(factor, a, whole.slice(1, 0, end - begin), false, c.slice(1, begin, end));
    }
  }
};

}  // namespace

template <class T>
void attention(View<const std::type_identity_t<T>> q, View<const std::type_identity_t<T>> k,
               View<const std::type_identity_t<T>> v, const AttentionOptions& options, View<T> out,
               View<T> log_sums) {
  const Tiling<T> tiling(q, k, options);
  const auto& kernel = kernels<SoftmaxKernels<T>>();
  const T scale = 1 / std::sqrt(static_cast<T>(q.extent(3)));
  Array<T> scratch = tiling.scratch();
  struct Row {
    T largest, sum;  ///< of the scores so far, and of the exponentials of what they fall short
  };
  std::vector<Row> rows(static_cast<std::size_t>(tiling.height()));

  const auto forward = [&](const Tile& tile, const Arranged<T>& keys, const Arranged<T>& values) {
    const View<T> scores(scratch.data(), {tile.queries(), tile.keys()});
    const View<const T> queries = matrix(q, tile.sample, tile.head);
    const View<T> result = matrix(out, tile.sample, tile.head).slice(0, tile.begin, tile.end);
    keys.times_columns(scale, queries.slice(0, tile.begin, tile.end), tile, scores);
    for (std::int64_t i = 0; i < tile.queries(); ++i) {
      T* const scored = &scores(i, 0);
      Row& row = rows[static_cast<std::size_t>(i)];
      const std::int64_t seen = tiling.seen(tile, i);
      if (tile.first()) {
        row.largest = kernel.maximum(seen, scored);
        row.sum = 0;
      } else if (const T largest = seen > 0 ? kernel.maximum(seen, scored) : row.largest;
                 largest > row.largest) {
        const T smaller = std::exp(row.largest - largest);
        row = {largest, row.sum * smaller};
        kernel.scale(result.extent(1), smaller, &result(i, 0));
      }
      row.sum += kernel.exponentials(seen, scored, row.largest, scored);
      std::fill(scored + seen, scored + tile.keys(), T(0));
    }
    if (tiling.drops()) tiling.drop(tile, scores);
    product<T>(1, scores, values.rows_of(tile), !tile.first(), result);
    if (!tile.last) return;
    for (std::int64_t i = 0; i < tile.queries(); ++i) {
      const Row& row = rows[static_cast<std::size_t>(i)];
      log_sums(tile.sample, tile.head, tile.begin + i) = row.largest + std::log(row.sum);
      kernel.scale(result.extent(1), 1 / row.sum, &result(i, 0));
    }
  };
  for (std::int64_t sample = 0; sample < tiling.samples(); ++sample) {
    for (std::int64_t key_head = 0; key_head < tiling.key_heads(); ++key_head) {
      const Arranged<T> keys(matrix(k, sample, key_head)), values(matrix(v, sample, key_head));
      for (std::int64_t i = 0; i < tiling.heads_each(); ++i) {
        tiling.each_tile(sample, key_head * tiling.heads_each() + i,
                         [&](const Tile& tile) { forward(tile, keys, values); });
      }
    }
  }
}

// With p the probabilities and m the mask of dropout: dv = (p·m)ᵀ · dout; dp = m · (dout · vᵀ);
// the gradient of scores is ds = p · (dp - Σ p · dp), where the sum is dout · out.
template <class T>
void attention_backward(View<const std::type_identity_t<T>> dout,
                        View<const std::type_identity_t<T>> q,
                        View<const std::type_identity_t<T>> k,
                        View<const std::type_identity_t<T>> v,
                        View<const std::type_identity_t<T>> out,
                        View<const std::type_identity_t<T>> log_sums,
                        const AttentionOptions& options, View<T> dq, View<T> dk, View<T> dv) {
  const Tiling<T> tiling(q, k, options);
  const auto& kernel = kernels<SoftmaxKernels<T>>();
  const T scale = 1 / std::sqrt(static_cast<T>(q.extent(3)));
  Array<T> scratch[] = {tiling.scratch(), tiling.scratch(),
                        tiling.drops() ? tiling.scratch() : Array<T>()};
  auto means = Array<T>::uninitialized({tiling.height()});  // Σ p · dp of each query
  auto queries_scratch = Array<T>::uninitialized({tiling.height(), q.extent(3)});
  auto gradients_scratch = Array<T>::uninitialized({tiling.height(), q.extent(3)});

  const auto backward = [&](const Tile& tile, std::int64_t key_head, const Arranged<T>& keys,
                            const Arranged<T>& values) {
    const auto of_tile = [&](auto view) {
      return matrix(view, tile.sample, tile.head).slice(0, tile.begin, tile.end);
    };
    const auto of_keys = [&](auto view) {
      return matrix(view, tile.sample, key_head).slice(0, tile.key_begin, tile.key_end);
    };
    const Shape shape{tile.queries(), tile.keys()};
    const View<T> p(scratch[0].data(), shape), ds(scratch[1].data(), shape);
    const View<T> queries = queries_scratch.view().slice(0, 0, tile.queries());
    const View<T> gradients = gradients_scratch.view().slice(0, 0, tile.queries());
    const View<const T> results = of_tile(out);
    if (tile.first()) {
      assign<T>(of_tile(q), queries);
      assign<T>(of_tile(dout), gradients);
    }
    keys.times_columns(scale, queries, tile, p);
    for (std::int64_t i = 0; i < tile.queries(); ++i) {
      T* const row = &p(i, 0);
      const std::int64_t seen = tiling.seen(tile, i);
      kernel.exponentials(seen, row, log_sums(tile.sample, tile.head, tile.begin + i), row);
      std::fill(row + seen, row + tile.keys(), T(0));
    }
    values.times_columns(1, gradients, tile, ds);
    View<T> kept = p;
    if (tiling.drops()) {
      kept = View<T>(scratch[2].data(), shape);
      std::fill_n(kept.data(), kept.size(), T(1));
      tiling.drop(tile, kept);
      kernel.times(ds.size(), kept.data(), ds.data());
      kernel.times(kept.size(), p.data(), kept.data());
    }
    product<T>(1, kept.transposed(0, 1), gradients, true, of_keys(dv));
    for (std::int64_t i = 0; i < tile.queries(); ++i) {
      T& mean = means.data()[i];
      if (tile.first()) mean = kernel.dot(q.extent(3), &gradients(i, 0), &results(i, 0));
      kernel.backward(tile.keys(), &p(i, 0), mean, scale, &ds(i, 0));
    }
    product<T>(1, ds, keys.rows_of(tile), !tile.first(), of_tile(dq));
    product<T>(1, ds.transposed(0, 1), queries, true, of_keys(dk));
  };
  for (std::int64_t sample = 0; sample < tiling.samples(); ++sample) {
    for (std::int64_t key_head = 0; key_head < tiling.key_heads(); ++key_head) {
      for (const View<T>& sum : {matrix(dk, sample, key_head), matrix(dv, sample, key_head)})
        for (std::int64_t i = 0; i < sum.extent(0); ++i)
          std::fill_n(&sum(i, 0), sum.extent(1), T(0));
      const Arranged<T> keys(matrix(k, sample, key_head)), values(matrix(v, sample, key_head));
      for (std::int64_t i = 0; i < tiling.heads_each(); ++i) {
        tiling.each_tile(sample, key_head * tiling.heads_each() + i,
                         [&](const Tile& tile) { backward(tile, key_head, keys, values); });
      }
    }
  }
}

#define BATON_INSTANTIATE(T)                                                                       \
  template void attention(View<const T>, View<const T>, View<const T>, const AttentionOptions&,    \
                          View<T>, View<T>);                                                       \
  template void attention_backward(View<const T>, View<const T>, View<const T>, View<const T>,     \
                                   View<const T>, View<const T>, const AttentionOptions&, View<T>, \
                                   View<T>, View<T>);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer::ops
