/// Layer norm, sums of columns, embeddings.

#include "kernel.cuh"
#include "kernels.hpp"

namespace baton::transformer::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(threads) layer_norm_kernel(LayerNorm<T> of) {
  DeviceTeam<NormState> team;
  const std::int64_t all = std::int64_t{gridDim.x} * rows_each;
  for (std::int64_t first = std::int64_t{blockIdx.x} * rows_each; first < of.rows; first += all)
    layer_norm_unit(team, of, first);
}

template <class T>
__global__ void __launch_bounds__(threads) layer_norm_backward_kernel(LayerNormBackward<T> of) {
  DeviceTeam<NormState> team;
  const std::int64_t all = std::int64_t{gridDim.x} * rows_each;
  for (std::int64_t first = std::int64_t{blockIdx.x} * rows_each; first < of.rows; first += all)
    layer_norm_backward_unit(team, of, first);
}

/// Of columns, a thread each; and of chunks, a row of thread blocks each.
__device__ __forceinline__ std::int64_t this_column() {
  return std::int64_t{blockIdx.x} * threads + threadIdx.x;
}
dim3 blocks_of(const Chunks& chunks) {
  return {static_cast<unsigned>((chunks.n + threads - 1) / threads),
          static_cast<unsigned>(chunks.count)};
}

template <class T>
__global__ void __launch_bounds__(threads)
    column_sum_kernel(Chunks chunks, const T* x, float* partial) {
  if (this_column() < chunks.n) column_sum_unit(chunks, blockIdx.y, this_column(), x, partial);
}
template <class T>
__global__ void __launch_bounds__(threads)
    norm_sum_kernel(Chunks chunks, LayerNormBackward<T> of, float* partial) {
  if (this_column() < chunks.n) norm_sum_unit(chunks, blockIdx.y, this_column(), of, partial);
}
template <class T>
__global__ void __launch_bounds__(threads)
    add_chunks_kernel(Chunks chunks, const float* partial, T* sum) {
  if (this_column() < chunks.n) add_chunks_unit(chunks, this_column(), partial, sum);
}
template <class T>
void add_chunks(const Chunks& chunks, const float* partial, T* sum, cudaStream_t stream) {
  add_chunks_kernel<<<blocks_of(chunks).x, threads, 0, stream>>>(chunks, partial, sum);
  launched("sums of columns");
}

template <class T>
__global__ void __launch_bounds__(threads) embedding_kernel(Table<T> of, const T* table, T* y) {
  const std::int64_t all = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = this_column(); i < of.count * of.d; i += all)
    embedding_unit(of, i, table, y);
}
template <class T>
__global__ void __launch_bounds__(threads) chain_kernel(Table<T> of, Chains chains) {
  __shared__ std::int32_t rows_here[threads];
  DeviceTeam<ChainState> team;
  chain_unit(team, of, chains, rows_here);
}
template <class T>
__global__ void __launch_bounds__(threads)
    embedding_backward_kernel(Table<T> of, Chains chains, const T* dy, T* dtable) {
  for (std::int64_t i = blockIdx.x; i < of.count; i += gridDim.x)
    for (std::int64_t column = threadIdx.x; column < of.d; column += threads)
      embedding_backward_unit(of, i, column, chains, dy, dtable);
}

template <class T>
void load_kernels_of() {
  load_all(&layer_norm_kernel<T>, &layer_norm_backward_kernel<T>, &column_sum_kernel<T>,
           &norm_sum_kernel<T>, &add_chunks_kernel<T>, &embedding_kernel<T>, &chain_kernel<T>,
           &embedding_backward_kernel<T>);
}

}  // namespace

template <class T>
void layer_norm(const LayerNorm<T>& of, cudaStream_t stream) {
  if (of.rows * of.n == 0) return;
  LayerNorm<T> by = of;
  by.quads = rows_take_quads(of.n, of.x, of.weight, of.bias, of.y);
  layer_norm_kernel<<<blocks_for(of.rows, rows_each), threads, 0, stream>>>(by);
  launched("layer_norm");
}

template <class T>
void layer_norm_backward(const LayerNormBackward<T>& of, T* dweight, T* dbias, float* scratch,
                         cudaStream_t stream) {
  if (of.rows * of.n == 0) return;
  const Chunks chunks = chunks_of(of.rows, of.n);
  norm_sum_kernel<<<blocks_of(chunks), threads, 0, stream>>>(chunks, of, scratch);
  launched("layer_norm_backward");
  add_chunks(chunks, scratch, dweight, stream);
  add_chunks(chunks, scratch + chunks.count * chunks.n, dbias, stream);
  LayerNormBackward<T> by = of;
  by.quads = rows_take_quads(of.n, of.dy, of.x, of.weight, of.dx);
  layer_norm_backward_kernel<<<blocks_for(of.rows, rows_each), threads, 0, stream>>>(by);
  launched("layer_norm_backward");
}

template <class T>
void add_rows(std::int64_t rows, std::int64_t n, const T* x, T* sum, float* scratch,
              cudaStream_t stream) {
  if (rows * n == 0) return;
  const Chunks chunks = chunks_of(rows, n);
  column_sum_kernel<<<blocks_of(chunks), threads, 0, stream>>>(chunks, x, scratch);
  launched("add_rows");
  add_chunks(chunks, scratch, sum, stream);
}

template <class T>
void embedding(const Table<T>& of, const T* table, T* y, cudaStream_t stream) {
  if (of.count * of.d == 0) return;
  embedding_kernel<<<blocks_for(of.count * of.d, threads), threads, 0, stream>>>(of, table, y);
  launched("embedding");
}

template <class T>
void embedding_backward(const Table<T>& of, const T* dy, T* dtable, std::int32_t* scratch,
                        cudaStream_t stream) {
  if (of.count * of.d == 0) return;
  const Chains chains = chains_in(scratch, of.count);
  chain_kernel<<<1, threads, 0, stream>>>(of, chains);
  launched("embedding_backward");
  embedding_backward_kernel<<<blocks_for(of.count, 1), threads, 0, stream>>>(of, chains, dy,
                                                                             dtable);
  launched("embedding_backward");
}

void load_row_kernels() {
  load_kernels_of<float>();
  load_kernels_of<bf16>();
}

#define BATON_INSTANTIATE(T)                                                                    \
  template void layer_norm(const LayerNorm<T>&, cudaStream_t);                                  \
  template void layer_norm_backward(const LayerNormBackward<T>&, T*, T*, float*, cudaStream_t); \
  template void add_rows(std::int64_t, std::int64_t, const T*, T*, float*, cudaStream_t);       \
  template void embedding(const Table<T>&, const T*, T*, cudaStream_t);                         \
  template void embedding_backward(const Table<T>&, const T*, T*, std::int32_t*, cudaStream_t);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer::cuda
