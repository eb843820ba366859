/// Attention, forward.

#include "attention.cuh"
#include "attention_units.hpp"

namespace baton::transformer::cuda {
namespace {

template <class Kind, int width, class T = typename Kind::Element>
__global__ void __launch_bounds__(attention_threads, 2)
    attention_kernel(const __grid_constant__ Attention<T> of, Units units) {
  extern __shared__ Chunk shared[];
  DeviceTeam<typename Forward<Kind, width>::State> team;
  const std::int64_t count = units.count();
  for (std::int64_t unit = blockIdx.x; unit < count; unit += gridDim.x) {
    attention_unit<Kind, width>(team, of, units.at(unit), shared);
    __syncthreads();
  }
}

}  // namespace

template <class T>
void attention(const Attention<T>& of, cudaStream_t stream) {
  with_sizes(of, [&]<class Kind, int width>() {
    using Sizes = Forward<Kind, width>;
    launch(&attention_kernel<Kind, width>, Sizes::shared_bytes,
           {of.samples, of.heads, of.queries, Sizes::rows}, of, stream);
  });
}

void load_attention_kernels() {
  with_all_sizes([&]<class Kind, int width>() {
    prepare(&attention_kernel<Kind, width>, Forward<Kind, width>::shared_bytes);
  });
}

template void attention(const Attention<float>&, cudaStream_t);
template void attention(const Attention<bf16>&, cudaStream_t);

}  // namespace baton::transformer::cuda
