/// transformer/cuda/kernels.hpp on the stand-in device: units in turn, in the stream's order.

#include <vector>

#include "stand_in_runtime.hpp"
#include "transformer/cuda/attention_backward_units.hpp"
#include "transformer/cuda/attention_units.hpp"
#include "transformer/cuda/kernels.hpp"

namespace baton::transformer::cuda {
namespace {

using support::give;
using support::seen;

template <class F, class To, class... From>
void map(std::int64_t n, To* to, cudaStream_t stream, const From*... from) {
  give(stream, [=] {
    const bool quads = takes_quads(to) && (takes_quads(from) && ...);
    for (std::int64_t quad = 0; quad < (n + 3) / 4; ++quad)
      map_unit(F(), n, quad, quads, seen(to), static_cast<const From*>(seen(from))...);
  });
}

/// Calls unit(team, first row) for all rows.
template <class State, class Unit>
void each_rows(std::int64_t rows, Unit unit) {
  HostTeam<State> team;
  for (std::int64_t first = 0; first < rows; first += rows_each) unit(team, first);
}

template <class T>
Heads<T> seen(Heads<T> heads) {
  heads.data = support::seen(heads.data);
  return heads;
}
template <class T>
Attention<T> seen(Attention<T> of) {
  of.q = seen(of.q), of.k = seen(of.k), of.v = seen(of.v), of.out = seen(of.out);
  of.result = seen(of.result), of.dout = seen(of.dout);
  of.dq = seen(of.dq), of.dk = seen(of.dk), of.dv = seen(of.dv);
  of.log_sums = support::seen(of.log_sums);
  of.result_log_sums = support::seen(of.result_log_sums), of.dots = support::seen(of.dots);
  return of;
}
template <class T>
LayerNormBackward<T> seen(LayerNormBackward<T> of) {
  of.dy = support::seen(of.dy), of.x = support::seen(of.x), of.weight = support::seen(of.weight);
  of.stats = support::seen(of.stats), of.dx = support::seen(of.dx);
  return of;
}
template <class T>
Table<T> seen(Table<T> of) {
  of.ids = support::seen(of.ids);
  return of;
}
template <class T>
Logits<T> seen(Logits<T> of) {
  of.logits = support::seen(of.logits), of.targets = support::seen(of.targets);
  return of;
}

template <class State, class T, class Unit>
void each_tile(std::int64_t heads, std::int64_t positions, int rows, const Attention<T>& of,
               int bytes, Unit unit) {
  std::vector<Chunk> shared(static_cast<std::size_t>(bytes) / sizeof(Chunk));
  for (std::int64_t begin = 0; begin < positions; begin += rows)
    for (std::int64_t sample = 0; sample < of.samples; ++sample)
      for (std::int64_t head = 0; head < heads; ++head) {
        HostTeam<State, attention_threads> team;
        unit(team, Tile{sample, head, begin}, shared.data());
      }
}
template <class Kind, int width, class T>
void forward(const Attention<T>& of) {
  using Sizes = Forward<Kind, width>;
  each_tile<typename Sizes::State>(of.heads, of.queries, Sizes::rows, of, Sizes::shared_bytes,
                                   [&](auto& team, const Tile& at, Chunk* shared) {
                                     attention_unit<Kind, width>(team, of, at, shared);
                                   });
}
template <class Kind, int width, class T>
void backward(const Attention<T>& of) {
  using Sizes = Backward<Kind, width>;
  each_tile<QueryGradientState<Kind, width>>(
      of.heads, of.queries, Sizes::rows, of, Sizes::shared_bytes,
      [&](auto& team, const Tile& at, Chunk* shared) {
        query_gradient_unit<Kind, width>(team, of, at, shared);
      });
  each_tile<KeyGradientState<Kind, width>>(of.key_heads, of.keys, Sizes::rows, of,
                                           Sizes::shared_bytes,
                                           [&](auto& team, const Tile& at, Chunk* shared) {
                                             key_gradient_unit<Kind, width>(team, of, at, shared);
                                           });
}

template <class T>
void add_chunks(const Chunks& chunks, const float* partial, T* sum) {
  for (std::int64_t column = 0; column < chunks.n; ++column)
    add_chunks_unit(chunks, column, partial, sum);
}
void add_up(std::int64_t count, const double* terms, double* total) {
  HostTeam<TotalState> team;
  double shared[rows_each];
  total_unit(team, count, terms, shared, total);
}

}  // namespace

void load_element_kernels() {}
void load_row_kernels() {}
void load_loss_kernels() {}
void load_attention_kernels() {}
void load_attention_backward_kernels() {}
void load_attention_warpgroup_kernels() {}

template <class T>
void activate(Activation f, std::int64_t n, const T* x, T* y, cudaStream_t stream) {
  with_activation<T>(f, [&](auto function, auto) { map<decltype(function)>(n, y, stream, x); });
}
template <class T>
void activate_backward(Activation f, std::int64_t n, const T* dy, const T* x, T* dx,
                       cudaStream_t stream) {
  with_activation<T>(
      f, [&](auto, auto derivative) { map<decltype(derivative)>(n, dx, stream, dy, x); });
}
template <class T>
void add(std::int64_t n, const T* x, T* y, cudaStream_t stream) {
  map<Add>(n, y, stream, static_cast<const T*>(y), x);
}
template <class T>
void add(const Strides<2>& strides, const T* x, T* y, cudaStream_t stream) {
  give(stream, [=] {
    for (std::int64_t i = 0; i < strides.count; ++i) add_unit(strides, i, seen(y), seen(x));
  });
}
template <class T>
void add_to_rows(std::int64_t rows, std::int64_t n, const T* bias, T* y, cudaStream_t stream) {
  give(stream, [=] {
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t quad = 0; quad < (n + 3) / 4; ++quad)
        add_to_rows_unit(n, row, quad, false, seen(bias), seen(y));
  });
}
template <class To, class From>
void convert(std::int64_t n, const From* from, To* to, cudaStream_t stream) {
  map<Same>(n, to, stream, from);
}
template <class To, class From>
void assign(const Strides<2>& strides, const From* from, To* to, cudaStream_t stream) {
  give(stream, [=] {
    for (std::int64_t i = 0; i < strides.count; ++i) assign_unit(strides, i, seen(to), seen(from));
  });
}
template <class T>
void dropout(const Strides<2>& strides, const Mask& mask, std::uint64_t first, T* x,
             cudaStream_t stream) {
  give(stream, [=] {
    for (std::int64_t i = 0; i < strides.count; ++i) dropout_unit(strides, i, mask, first, seen(x));
  });
}
template <class T>
void sgd(const SgdFactors& step, std::int64_t n, const T* grad, T* value, float* master,
         float* velocity, cudaStream_t stream) {
  give(stream, [=] {
    for (std::int64_t i = 0; i < n; ++i)
      sgd_unit(step, i, seen(grad), seen(value), seen(master), seen(velocity));
  });
}
template <class T>
void adamw(const AdamStep& step, std::int64_t n, const T* grad, T* value, float* master,
           float* mean, float* square, cudaStream_t stream) {
  give(stream, [=] {
    for (std::int64_t i = 0; i < n; ++i)
      adamw_unit(step, i, seen(grad), seen(value), seen(master), seen(mean), seen(square));
  });
}

template <class T>
void layer_norm(const LayerNorm<T>& of, cudaStream_t stream) {
  give(stream, [=] {
    const LayerNorm<T> here{of.rows,       of.n,       seen(of.x), seen(of.weight),
                            seen(of.bias), of.epsilon, seen(of.y), seen(of.stats)};
    each_rows<NormState>(of.rows,
                         [&](auto& team, auto first) { layer_norm_unit(team, here, first); });
  });
}
template <class T>
void layer_norm_backward(const LayerNormBackward<T>& of, T* dweight, T* dbias, float* scratch,
                         cudaStream_t stream) {
  give(stream, [=] {
    const auto here = seen(of);
    float* const partial = seen(scratch);
    const Chunks chunks = chunks_of(of.rows, of.n);
    for (std::int64_t chunk = 0; chunk < chunks.count; ++chunk)
      for (std::int64_t column = 0; column < of.n; ++column)
        norm_sum_unit(chunks, chunk, column, here, partial);
    add_chunks(chunks, partial, seen(dweight));
    add_chunks(chunks, partial + chunks.count * chunks.n, seen(dbias));
    each_rows<NormState>(
        of.rows, [&](auto& team, auto first) { layer_norm_backward_unit(team, here, first); });
  });
}
template <class T>
void add_rows(std::int64_t rows, std::int64_t n, const T* x, T* sum, float* scratch,
              cudaStream_t stream) {
  give(stream, [=] {
    const Chunks chunks = chunks_of(rows, n);
    for (std::int64_t chunk = 0; chunk < chunks.count; ++chunk)
      for (std::int64_t column = 0; column < n; ++column)
        column_sum_unit(chunks, chunk, column, seen(x), seen(scratch));
    add_chunks(chunks, seen(scratch), seen(sum));
  });
}
template <class T>
void embedding(const Table<T>& of, const T* table, T* y, cudaStream_t stream) {
  give(stream, [=] {
    for (std::int64_t i = 0; i < of.count * of.d; ++i)
      embedding_unit(seen(of), i, seen(table), seen(y));
  });
}
template <class T>
void embedding_backward(const Table<T>& of, const T* dy, T* dtable, std::int32_t* scratch,
                        cudaStream_t stream) {
  give(stream, [=] {
    const Chains chains = chains_in(seen(scratch), of.count);
    HostTeam<ChainState> team;
    std::int32_t rows_here[threads];
    chain_unit(team, seen(of), chains, rows_here);
    for (std::int64_t i = 0; i < of.count; ++i)
      for (std::int64_t column = 0; column < of.d; ++column)
        embedding_backward_unit(seen(of), i, column, chains, seen(dy), seen(dtable));
  });
}

std::int64_t mse_terms(std::int64_t count) { return (count + mse_each - 1) / mse_each * rows_each; }
template <class T>
void mse(const Mse<T>& of, double* scratch, double* total, cudaStream_t stream) {
  give(stream, [=] {
    const Mse<T> here{of.count, seen(of.y), seen(of.target), of.scale, seen(of.dy)};
    HostTeam<TotalState> team;
    for (std::int64_t block = 0; block * mse_each < of.count; ++block)
      mse_unit(team, here, block, seen(scratch));
    add_up(mse_terms(of.count), seen(scratch), seen(total));
  });
}
template <class T>
void row_maximum(const Logits<T>& of, float* most, cudaStream_t stream) {
  give(stream, [=] {
    each_rows<RowState>(of.rows, [&](auto& team, auto first) {
      row_maximum_unit(team, seen(of), first, seen(most));
    });
  });
}
template <class T>
void exponential_sums(const Logits<T>& of, const float* most, float* sums, cudaStream_t stream) {
  give(stream, [=] {
    each_rows<RowState>(of.rows, [&](auto& team, auto first) {
      exponential_sums_unit(team, seen(of), first, seen(most), seen(sums));
    });
  });
}
template <class T>
void cross_entropy(const Logits<T>& of, const float* most, const float* sums, double elements,
                   T* dlogits, double* scratch, double* total, cudaStream_t stream) {
  give(stream, [=] {
    each_rows<RowState>(of.rows, [&](auto& team, auto first) {
      cross_entropy_unit(team, seen(of), first, seen(most), seen(sums), elements, seen(scratch),
                         seen(dlogits));
    });
    add_up(of.rows, seen(scratch), seen(total));
  });
}

template <class T>
void attention(const Attention<T>& of, cudaStream_t stream) {
  give(stream,
       [=] { with_sizes(of, [&]<class Kind, int width>() { forward<Kind, width>(seen(of)); }); });
}
template <class T>
void attention_backward(const Attention<T>& of, cudaStream_t stream) {
  give(stream,
       [=] { with_sizes(of, [&]<class Kind, int width>() { backward<Kind, width>(seen(of)); }); });
}

#define BATON_INSTANTIATE(T)                                                                       \
  template void activate(Activation, std::int64_t, const T*, T*, cudaStream_t);                    \
  template void activate_backward(Activation, std::int64_t, const T*, const T*, T*, cudaStream_t); \
  template void add(std::int64_t, const T*, T*, cudaStream_t);                                     \
  template void add(const Strides<2>&, const T*, T*, cudaStream_t);                                \
  template void add_to_rows(std::int64_t, std::int64_t, const T*, T*, cudaStream_t);               \
  template void convert(std::int64_t, const T*, float*, cudaStream_t);                             \
  template void convert(std::int64_t, const T*, bf16*, cudaStream_t);                              \
  template void assign(const Strides<2>&, const T*, float*, cudaStream_t);                         \
  template void assign(const Strides<2>&, const T*, bf16*, cudaStream_t);                          \
  template void dropout(const Strides<2>&, const Mask&, std::uint64_t, T*, cudaStream_t);          \
  template void sgd(const SgdFactors&, std::int64_t, const T*, T*, float*, float*, cudaStream_t);  \
  template void adamw(const AdamStep&, std::int64_t, const T*, T*, float*, float*, float*,         \
                      cudaStream_t);                                                               \
  template void layer_norm(const LayerNorm<T>&, cudaStream_t);                                     \
  template void layer_norm_backward(const LayerNormBackward<T>&, T*, T*, float*, cudaStream_t);    \
  template void add_rows(std::int64_t, std::int64_t, const T*, T*, float*, cudaStream_t);          \
  template void embedding(const Table<T>&, const T*, T*, cudaStream_t);                            \
  template void embedding_backward(const Table<T>&, const T*, T*, std::int32_t*, cudaStream_t);    \
  template void mse(const Mse<T>&, double*, double*, cudaStream_t);                                \
  template void row_maximum(const Logits<T>&, float*, cudaStream_t);                               \
  template void exponential_sums(const Logits<T>&, const float*, float*, cudaStream_t);            \
  template void cross_entropy(const Logits<T>&, const float*, const float*, double, T*, double*,   \
                              double*, cudaStream_t);                                              \
  template void attention(const Attention<T>&, cudaStream_t);                                      \
  template void attention_backward(const Attention<T>&, cudaStream_t);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE
template void assign(const Strides<2>&, const std::int32_t*, std::int32_t*, cudaStream_t);

}  // namespace baton::transformer::cuda
