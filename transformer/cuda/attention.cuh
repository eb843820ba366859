#pragma once
/// Launches of attention's kernels.

#include "kernel.cuh"
#include "kernels.hpp"

namespace baton::transformer::cuda {

/// Which unit a thread block does: the last tiles first, since of causal attention those of queries
/// are the largest.
struct Units {
  std::int64_t samples, heads, positions;
  int rows;  ///< of a tile
  BATON_DEVICE std::int64_t tiles() const { return (positions + rows - 1) / rows; }
  BATON_DEVICE std::int64_t count() const { return samples * heads * tiles(); }
  __device__ __forceinline__ Tile at(std::int64_t unit) const {
    const std::int64_t row = unit % (samples * heads);
    return {row / heads, row % heads, (tiles() - 1 - unit / (samples * heads)) * rows};
  }
};

/// Lets a kernel have so much shared memory, and loads it; not where the device has less.
template <class Kernel>
void prepare(Kernel kernel, int bytes) {
  int device = 0, most = 0;
  check(cudaGetDevice(&device), "the current device");
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "a device's shared memory");
  if (bytes > most) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "shared memory of a kernel of attention");
  load_all(kernel);
}

template <class Kernel, class T>
void launch(Kernel kernel, int bytes, const Units& units, const Attention<T>& of,
            cudaStream_t stream) {
  if (units.count() == 0) return;
  kernel<<<blocks_for(units.count(), 1), attention_threads, static_cast<std::size_t>(bytes),
           stream>>>(of, units);
  launched("attention");
}

}  // namespace baton::transformer::cuda
