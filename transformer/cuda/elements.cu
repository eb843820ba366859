/// Maps of elements.

#include "kernel.cuh"
#include "kernels.hpp"

namespace baton::transformer::cuda {
namespace {

/// A loop over indexes, of threads that are as many apart as there are.
template <class Body>
__device__ __forceinline__ void each(std::int64_t count, Body body) {
  const std::int64_t all = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += all)
    body(i);
}

template <class F, class To, class... From>
__global__ void __launch_bounds__(threads)
    map_kernel(F f, std::int64_t n, bool quads, To* to, const From*... from) {
  each((n + 3) / 4, [&](std::int64_t quad) { map_unit(f, n, quad, quads, to, from...); });
}
template <class F, class To, class... From>
void map(std::int64_t n, To* to, cudaStream_t stream, const From*... from) {
  if (n == 0) return;
  const bool quads = takes_quads(to) && (takes_quads(from) && ...);
  map_kernel<<<blocks_for((n + 3) / 4, threads), threads, 0, stream>>>(F(), n, quads, to, from...);
  launched("a map of elements");
}

template <class T>
__global__ void __launch_bounds__(threads)
    add_to_rows_kernel(std::int64_t rows, std::int64_t n, bool quads, const T* bias, T* y) {
  const std::int64_t quad = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (4 * quad >= n) return;
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y)
    add_to_rows_unit(n, row, quad, quads, bias, y);
}

template <class To, class From>
__global__ void __launch_bounds__(threads)
    assign_kernel(const __grid_constant__ Strides<2> strides, To* to, const From* from) {
  each(strides.count, [&](std::int64_t i) { assign_unit(strides, i, to, from); });
}

template <class T>
__global__ void __launch_bounds__(threads)
    add_kernel(const __grid_constant__ Strides<2> strides, T* y, const T* x) {
  each(strides.count, [&](std::int64_t i) { add_unit(strides, i, y, x); });
}

template <class T>
__global__ void __launch_bounds__(threads)
    dropout_kernel(const __grid_constant__ Strides<2> strides, Mask mask, std::uint64_t first,
                   T* x) {
  each(strides.count, [&](std::int64_t i) { dropout_unit(strides, i, mask, first, x); });
}

template <class T>
__global__ void __launch_bounds__(threads)
    sgd_kernel(SgdFactors step, std::int64_t n, const T* grad, T* value, float* master,
               float* velocity) {
  each(n, [&](std::int64_t i) { sgd_unit(step, i, grad, value, master, velocity); });
}

template <class T>
__global__ void __launch_bounds__(threads)
    adamw_kernel(AdamStep step, std::int64_t n, const T* grad, T* value, float* master, float* mean,
                 float* square) {
  each(n, [&](std::int64_t i) { adamw_unit(step, i, grad, value, master, mean, square); });
}

template <class T>
void load_kernels_of() {
  for (const auto f : {Activation::relu, Activation::gelu, Activation::gelu_tanh}) {
    with_activation<T>(f, [](auto function, auto derivative) {
      load_all(&map_kernel<decltype(function), T, T>, &map_kernel<decltype(derivative), T, T, T>);
    });
  }
  load_all(&map_kernel<Add, T, T, T>, &map_kernel<Same, float, T>, &map_kernel<Same, bf16, T>,
           &add_to_rows_kernel<T>, &assign_kernel<float, T>, &assign_kernel<bf16, T>,
           &add_kernel<T>, &dropout_kernel<T>, &sgd_kernel<T>, &adamw_kernel<T>);
}

}  // namespace

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
void add_to_rows(std::int64_t rows, std::int64_t n, const T* bias, T* y, cudaStream_t stream) {
  if (rows * n == 0) return;
  const bool quads = rows_take_quads(n, bias, y);
  const auto blocks = static_cast<unsigned>((n + 4 * threads - 1) / (4 * threads));
  const auto rows_at_once =
      static_cast<unsigned>(rows < 65535 ? rows : 65535);  // gridDim.y's limit
  add_to_rows_kernel<<<dim3{blocks, rows_at_once}, threads, 0, stream>>>(rows, n, quads, bias, y);
  launched("add_to_rows");
}
template <class To, class From>
void convert(std::int64_t n, const From* from, To* to, cudaStream_t stream) {
  map<Same>(n, to, stream, from);
}
template <class To, class From>
void assign(const Strides<2>& strides, const From* from, To* to, cudaStream_t stream) {
  if (strides.count == 0) return;
  assign_kernel<<<blocks_for(strides.count, threads), threads, 0, stream>>>(strides, to, from);
  launched("assign");
}
template <class T>
void add(const Strides<2>& strides, const T* x, T* y, cudaStream_t stream) {
  if (strides.count == 0) return;
  add_kernel<<<blocks_for(strides.count, threads), threads, 0, stream>>>(strides, y, x);
  launched("add");
}
template <class T>
void dropout(const Strides<2>& strides, const Mask& mask, std::uint64_t first, T* x,
             cudaStream_t stream) {
  if (strides.count == 0) return;
  dropout_kernel<<<blocks_for(strides.count, threads), threads, 0, stream>>>(strides, mask, first,
                                                                             x);
  launched("dropout");
}
template <class T>
void sgd(const SgdFactors& step, std::int64_t n, const T* grad, T* value, float* master,
         float* velocity, cudaStream_t stream) {
  if (n == 0) return;
  sgd_kernel<<<blocks_for(n, threads), threads, 0, stream>>>(step, n, grad, value, master,
                                                             velocity);
  launched("a step of SGD");
}
template <class T>
void adamw(const AdamStep& step, std::int64_t n, const T* grad, T* value, float* master,
           float* mean, float* square, cudaStream_t stream) {
  if (n == 0) return;
  adamw_kernel<<<blocks_for(n, threads), threads, 0, stream>>>(step, n, grad, value, master, mean,
                                                               square);
  launched("a step of AdamW");
}

void load_element_kernels() {
  load_kernels_of<float>();
  load_kernels_of<bf16>();
  load_all(&assign_kernel<std::int32_t, std::int32_t>);
}

#define BATON_INSTANTIATE(T)                                                                       \
  template void activate(Activation, std::int64_t, const T*, T*, cudaStream_t);                    \
  template void activate_backward(Activation, std::int64_t, const T*, const T*, T*, cudaStream_t); \
  template void add(std::int64_t, const T*, T*, cudaStream_t);                                     \
  template void add_to_rows(std::int64_t, std::int64_t, const T*, T*, cudaStream_t);               \
  template void convert(std::int64_t, const T*, float*, cudaStream_t);                             \
  template void convert(std::int64_t, const T*, bf16*, cudaStream_t);                              \
  template void assign(const Strides<2>&, const T*, float*, cudaStream_t);                         \
  template void assign(const Strides<2>&, const T*, bf16*, cudaStream_t);                          \
  template void add(const Strides<2>&, const T*, T*, cudaStream_t);                                \
  template void dropout(const Strides<2>&, const Mask&, std::uint64_t, T*, cudaStream_t);          \
  template void sgd(const SgdFactors&, std::int64_t, const T*, T*, float*, float*, cudaStream_t);  \
  template void adamw(const AdamStep&, std::int64_t, const T*, T*, float*, float*, float*,         \
                      cudaStream_t);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE
template void assign(const Strides<2>&, const std::int32_t*, std::int32_t*, cudaStream_t);

}  // namespace baton::transformer::cuda
