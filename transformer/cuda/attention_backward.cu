/// Attention, backward: the gradients by queries, then those by keys and values.

#include "attention.cuh"
#include "attention_backward_units.hpp"

namespace baton::transformer::cuda {
namespace {

template <int width, class T>
__global__ void __launch_bounds__(threads)
    query_gradient_kernel(const __grid_constant__ Attention<T> of, Units units) {
  extern __shared__ __align__(16) float shared[];
  DeviceTeam<QueryGradientState<width>> team;
  for (std::int64_t unit = blockIdx.x; unit < units.samples * units.heads * units.tiles;
       unit += gridDim.x)
    query_gradient_unit<width>(team, of, units.at(unit), shared);
}

template <int width, class T>
__global__ void __launch_bounds__(threads)
    key_gradient_kernel(const __grid_constant__ Attention<T> of, Units units) {
  extern __shared__ __align__(16) float shared[];
  DeviceTeam<KeyGradientState<width>> team;
  for (std::int64_t unit = blockIdx.x; unit < units.samples * units.heads * units.tiles;
       unit += gridDim.x)
    key_gradient_unit<width>(team, of, units.at(unit), shared);
}

template <int width, class T>
void prepare_width() {
  prepare(&query_gradient_kernel<width, T>, query_gradient_floats<width>);
  prepare(&key_gradient_kernel<width, T>, key_gradient_floats<width>);
}

template <int width, class T>
void backward(const Attention<T>& of, cudaStream_t stream) {
  launch(&query_gradient_kernel<width, T>, query_gradient_floats<width>,
         {of.samples, of.heads, (of.queries + tile - 1) / tile}, of, stream);
  launch(&key_gradient_kernel<width, T>, key_gradient_floats<width>,
         {of.samples, of.key_heads, (of.keys + tile - 1) / tile}, of, stream);
}

}  // namespace

template <class T>
void attention_backward(const Attention<T>& of, cudaStream_t stream) {
  is_narrow(of.size) ? backward<tile>(of, stream) : backward<largest_head>(of, stream);
}

void load_attention_backward_kernels() {
  prepare_width<tile, float>();
  prepare_width<tile, bf16>();
  prepare_width<largest_head, float>();
  prepare_width<largest_head, bf16>();
}

template void attention_backward(const Attention<float>&, cudaStream_t);
template void attention_backward(const Attention<bf16>&, cudaStream_t);

}  // namespace baton::transformer::cuda
