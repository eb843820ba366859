#pragma once
/// Attention's kernels, and their launches. Those of a Kind by warpgroups are for devices of
/// compute capability 9.0.

#include "attention_backward_units.hpp"
#include "attention_units.hpp"
#include "kernel.cuh"
#include "kernels.hpp"

namespace baton::transformer::cuda {

/// Which unit a thread block does. Of causal attention the last tiles of queries are the largest,
/// and the first tiles of keys: those come first.
struct Units {
  std::int64_t samples, heads, positions;
  int rows;  ///< of a tile
  bool last_first;
  BATON_DEVICE std::int64_t tiles() const { return (positions + rows - 1) / rows; }
  BATON_DEVICE std::int64_t count() const { return samples * heads * tiles(); }
  __device__ __forceinline__ Tile at(std::int64_t unit) const {
    const std::int64_t row = unit % (samples * heads), tile = unit / (samples * heads);
    return {row / heads, row % heads, (last_first ? tiles() - 1 - tile : tile) * rows};
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

/// Shared memory of a kernel; with TMA, its barriers come last.
template <class Kind>
constexpr int shared_with_barriers(int bytes) {
  return bytes + (Kind::by_tma ? static_cast<int>(sizeof(Chunk)) : 0);
}

template <class Kernel, class T, class Argument>
void launch(Kernel kernel, int bytes, const Units& units, const Attention<T>& of,
            const Argument& argument, cudaStream_t stream) {
  if (units.count() == 0) return;
  kernel<<<blocks_for(units.count(), 1), attention_threads, static_cast<std::size_t>(bytes),
           stream>>>(of, units, argument);
  launched("attention");
}

/// Attention with what is known of it when it is compiled: if `plain`, rows of whole chunks and no
/// dropout, whose code takes registers.
template <bool plain, class T>
__device__ __forceinline__ Attention<T> known(const Attention<T>& of) {
  Attention<T> copy = of;
  if (plain) copy.whole_chunks = true, copy.drops = false;
  return copy;
}

// A Team is DeviceTeam, WarpgroupTeam of a Kind by warpgroups, or TmaTeam, whose argument is
// TensorMaps. Swizzled tiles are aligned to 1,024 bytes.

template <template <class> class Team, class Kind, int width, bool plain, class Argument,
          class T = typename Kind::Element>
__global__ void __launch_bounds__(attention_threads, 2)
    attention_kernel(const __grid_constant__ Attention<T> any, Units units,
                     const __grid_constant__ Argument argument) {
  extern __shared__ __align__(1024) Chunk shared[];
  const Attention<T> of = known<plain>(any);
  Team<typename Forward<Kind, width>::State> team(
      argument, shared + Forward<Kind, width>::shared_bytes / sizeof(Chunk));
  const std::int64_t count = units.count();
  for (std::int64_t unit = blockIdx.x; unit < count; unit += gridDim.x) {
    attention_unit<Kind, width>(team, of, units.at(unit), shared);
    __syncthreads();
  }
}

template <template <class> class Team, class Kind, int width, bool plain, class Argument,
          class T = typename Kind::Element>
__global__ void __launch_bounds__(attention_threads, 2)
    query_gradient_kernel(const __grid_constant__ Attention<T> any, Units units,
                          const __grid_constant__ Argument argument) {
  extern __shared__ __align__(1024) Chunk shared[];
  const Attention<T> of = known<plain>(any);
  Team<QueryGradientState<Kind, width>> team(
      argument, shared + Backward<Kind, width>::shared_bytes / sizeof(Chunk));
  const std::int64_t count = units.count();
  for (std::int64_t unit = blockIdx.x; unit < count; unit += gridDim.x)
    query_gradient_unit<Kind, width>(team, of, units.at(unit), shared);
}

template <template <class> class Team, class Kind, int width, bool plain, class Argument,
          class T = typename Kind::Element>
__global__ void __launch_bounds__(attention_threads, 2)
    key_gradient_kernel(const __grid_constant__ Attention<T> any, Units units,
                        const __grid_constant__ Argument argument) {
  extern __shared__ __align__(1024) Chunk shared[];
  const Attention<T> of = known<plain>(any);
  Team<KeyGradientState<Kind, width>> team(
      argument, shared + Backward<Kind, width>::shared_bytes / sizeof(Chunk));
  const std::int64_t count = units.count();
  for (std::int64_t unit = blockIdx.x; unit < count; unit += gridDim.x)
    key_gradient_unit<Kind, width>(team, of, units.at(unit), shared);
}

/// Enqueues attention.
template <template <class> class Team, class Kind, int width, bool plain = false,
          class Argument = Nothing, class T>
void forward(const Attention<T>& of, cudaStream_t stream, const Argument& argument = {}) {
  using Sizes = Forward<Kind, width>;
  launch(&attention_kernel<Team, Kind, width, plain, Argument>,
         shared_with_barriers<Kind>(Sizes::shared_bytes),
         {of.samples, of.heads, of.queries, Sizes::rows, true}, of, argument, stream);
}
/// Enqueues the gradients by queries, then those by keys and values.
template <template <class> class Team, class Kind, int width, bool plain = false,
          class Argument = Nothing, class T>
void backward(const Attention<T>& of, cudaStream_t stream, const Argument& argument = {}) {
  using Sizes = Backward<Kind, width>;
  launch(&query_gradient_kernel<Team, Kind, width, plain, Argument>,
         shared_with_barriers<Kind>(Sizes::shared_bytes),
         {of.samples, of.heads, of.queries, Sizes::rows, true}, of, argument, stream);
  launch(&key_gradient_kernel<Team, Kind, width, plain, Argument>,
         shared_with_barriers<Kind>(Sizes::shared_bytes),
         {of.samples, of.key_heads, of.keys, Sizes::rows, false}, of, argument, stream);
}
template <template <class> class Team, class Kind, int width, bool plain = false,
          class Argument = Nothing>
void prepare_forward() {
  prepare(&attention_kernel<Team, Kind, width, plain, Argument>,
          shared_with_barriers<Kind>(Forward<Kind, width>::shared_bytes));
}
template <template <class> class Team, class Kind, int width, bool plain = false,
          class Argument = Nothing>
void prepare_backward() {
  prepare(&query_gradient_kernel<Team, Kind, width, plain, Argument>,
          shared_with_barriers<Kind>(Backward<Kind, width>::shared_bytes));
  prepare(&key_gradient_kernel<Team, Kind, width, plain, Argument>,
          shared_with_barriers<Kind>(Backward<Kind, width>::shared_bytes));
}

}  // namespace baton::transformer::cuda
