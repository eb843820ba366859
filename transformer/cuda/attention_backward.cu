/// Attention, backward: the gradients by queries, then those by keys and values.

#include "attention.cuh"
#include "attention_backward_units.hpp"

namespace baton::transformer::cuda {
namespace {

template <class Kind, int width, class T = typename Kind::Element>
__global__ void __launch_bounds__(attention_threads, 2)
    query_gradient_kernel(const __grid_constant__ Attention<T> of, Units units) {
  extern __shared__ Chunk shared[];
  DeviceTeam<QueryGradientState<Kind, width>> team;
  const std::int64_t count = units.count();
  for (std::int64_t unit = blockIdx.x; unit < count; unit += gridDim.x)
    query_gradient_unit<Kind, width>(team, of, units.at(unit), shared);
}

template <class Kind, int width, class T = typename Kind::Element>
__global__ void __launch_bounds__(attention_threads, 2)
    key_gradient_kernel(const __grid_constant__ Attention<T> of, Units units) {
  extern __shared__ Chunk shared[];
  DeviceTeam<KeyGradientState<Kind, width>> team;
  const std::int64_t count = units.count();
  for (std::int64_t unit = blockIdx.x; unit < count; unit += gridDim.x)
    key_gradient_unit<Kind, width>(team, of, units.at(unit), shared);
}

}  // namespace

template <class T>
void attention_backward(const Attention<T>& of, cudaStream_t stream) {
  with_sizes(of, [&]<class Kind, int width>() {
    using Sizes = Backward<Kind, width>;
    launch(&query_gradient_kernel<Kind, width>, Sizes::shared_bytes,
           {of.samples, of.heads, of.queries, Sizes::rows}, of, stream);
    launch(&key_gradient_kernel<Kind, width>, Sizes::shared_bytes,
           {of.samples, of.key_heads, of.keys, Sizes::rows}, of, stream);
  });
}

void load_attention_backward_kernels() {
  with_all_sizes([&]<class Kind, int width>() {
    prepare(&query_gradient_kernel<Kind, width>, Backward<Kind, width>::shared_bytes);
    prepare(&key_gradient_kernel<Kind, width>, Backward<Kind, width>::shared_bytes);
  });
}

template void attention_backward(const Attention<float>&, cudaStream_t);
template void attention_backward(const Attention<bf16>&, cudaStream_t);

}  // namespace baton::transformer::cuda
