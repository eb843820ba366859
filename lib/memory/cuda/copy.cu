/// Strided copies.

#include "kernel_table.hpp"
#include "units.hpp"

namespace baton::cuda {
namespace {

__global__ void __launch_bounds__(threads)
    strided_copy(const __grid_constant__ Batch<Strided<2>> batch) {
  for (std::uint32_t unit = blockIdx.x; unit < batch.units; unit += gridDim.x)
    copy_unit(batch, unit, threadIdx.x);
}

__global__ void __launch_bounds__(threads, copy_blocks)
    transpose(const __grid_constant__ Batch<Tiles> batch) {
  extern __shared__ __align__(widest) std::byte shared[];
  for (std::uint32_t unit = blockIdx.x; unit < batch.units; unit += gridDim.x) {
    tile_in(batch, unit, threadIdx.x, shared);
    __syncthreads();
    tile_out(batch, unit, threadIdx.x, shared);
    __syncthreads();
  }
}

}  // namespace

const void* copy_kernel() { return reinterpret_cast<const void*>(&strided_copy); }
const void* tile_kernel() { return reinterpret_cast<const void*>(&transpose); }

}  // namespace baton::cuda
