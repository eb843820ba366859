/// Attention, forward.

#include "attention.cuh"
#include "attention_units.hpp"

namespace baton::transformer::cuda {
namespace {

template <int width, class T>
__global__ void __launch_bounds__(threads)
    attention_kernel(const __grid_constant__ Attention<T> of, Units units) {
  extern __shared__ __align__(16) float shared[];
  DeviceTeam<AttentionState<width>> team;
  for (std::int64_t unit = blockIdx.x; unit < units.samples * units.heads * units.tiles;
       unit += gridDim.x)
    attention_unit<width>(team, of, units.at(unit), shared);
}

template <int width>
void prepare_width() {
  prepare(&attention_kernel<width, float>, attention_floats<width>);
  prepare(&attention_kernel<width, bf16>, attention_floats<width>);
}

}  // namespace

template <class T>
void attention(const Attention<T>& of, cudaStream_t stream) {
  const Units units{of.samples, of.heads, (of.queries + tile - 1) / tile};
  if (is_narrow(of.size)) {
    launch(&attention_kernel<tile, T>, attention_floats<tile>, units, of, stream);
  } else {
    launch(&attention_kernel<largest_head, T>, attention_floats<largest_head>, units, of, stream);
  }
}

void load_attention_kernels() {
  prepare_width<tile>();
  prepare_width<largest_head>();
}

template void attention(const Attention<float>&, cudaStream_t);
template void attention(const Attention<bf16>&, cudaStream_t);

}  // namespace baton::transformer::cuda
