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

// The work of each kernel: a thread block's, its threads' state, and the units that it comes in.

template <class Kind_, int width>
struct ForwardWork {
  using Kind = Kind_;
  using Sizes = Forward<Kind, width>;
  using State = typename Sizes::State;
  template <class T>
  static Units units(const Attention<T>& of) {
    return {of.samples, of.heads, of.queries, Sizes::rows, true};
  }
  template <class Team, class T>
  static __device__ __forceinline__ void unit(Team& team, const Attention<T>& of, const Tile& at,
                                              Chunk* shared) {
    attention_unit<Kind, width>(team, of, at, shared);
  }
};
template <class Kind_, int width>
struct QueryGradientWork {
  using Kind = Kind_;
  using Sizes = Backward<Kind, width>;
  using State = QueryGradientState<Kind, width>;
  template <class T>
  static Units units(const Attention<T>& of) {
    return {of.samples, of.heads, of.queries, Sizes::rows, true};
  }
  template <class Team, class T>
  static __device__ __forceinline__ void unit(Team& team, const Attention<T>& of, const Tile& at,
                                              Chunk* shared) {
    query_gradient_unit<Kind, width>(team, of, at, shared);
  }
};
template <class Kind_, int width>
struct KeyGradientWork {
  using Kind = Kind_;
  using Sizes = Backward<Kind, width>;
  using State = KeyGradientState<Kind, width>;
  template <class T>
  static Units units(const Attention<T>& of) {
    return {of.samples, of.key_heads, of.keys, Sizes::rows, false};
  }
  template <class Team, class T>
  static __device__ __forceinline__ void unit(Team& team, const Attention<T>& of, const Tile& at,
                                              Chunk* shared) {
    key_gradient_unit<Kind, width>(team, of, at, shared);
  }
};

/// Attention with what a Kind by TMA knows of it: rows of whole chunks and no dropout, whose code
/// takes registers.
template <class Kind, class T>
__device__ __forceinline__ Attention<T> known(const Attention<T>& of) {
  Attention<T> copy = of;
  if (Kind::by_tma) copy.whole_chunks = true, copy.drops = false;
  return copy;
}

/// Team: DeviceTeam; of a Kind by warpgroups WarpgroupTeam, and by TMA TmaTeam. Swizzled tiles are
/// aligned to 1,024 bytes.
template <template <class> class Team, class Work, class T = typename Work::Kind::Element>
__global__ void __launch_bounds__(attention_threads, 2)
    attention_kernel(const __grid_constant__ Attention<T> any, Units units,
                     const __grid_constant__
                     typename Team<typename Work::State>::Argument argument) {
  extern __shared__ __align__(1024) Chunk shared[];
  const Attention<T> of = known<typename Work::Kind>(any);
  Team<typename Work::State> team(argument, shared + Work::Sizes::shared_bytes / sizeof(Chunk));
  const std::int64_t count = units.count();
  for (std::int64_t unit = blockIdx.x; unit < count; unit += gridDim.x) {
    Work::unit(team, of, units.at(unit), shared);
    __syncthreads();  // shared memory may be overwritten
  }
}

/// Shared memory of a kernel; with TMA, its barriers come last.
template <class Work>
constexpr int bytes_of = Work::Sizes::shared_bytes +
                         (Work::Kind::by_tma ? static_cast<int>(sizeof(Chunk)) : 0);

/// Lets a kernel have its shared memory, and loads it; not where the device has less.
template <template <class> class Team, class Work>
void prepare() {
  const auto kernel = &attention_kernel<Team, Work>;
  int device = 0, most = 0;
  check(cudaGetDevice(&device), "the current device");
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "a device's shared memory");
  if (bytes_of < Work >> most) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes_of<Work>),
        "shared memory of a kernel of attention");
  load_all(kernel);
}
/// Both kernels of backward.
template <template <class> class Team, class Kind, int width>
void prepare_backward() {
  prepare<Team, QueryGradientWork<Kind, width>>();
  prepare<Team, KeyGradientWork<Kind, width>>();
}

template <template <class> class Team, class Work, class T, class Argument = Nothing>
void enqueue(const Attention<T>& of, cudaStream_t stream, const Argument& argument = {}) {
  const Units units = Work::units(of);
  if (units.count() == 0) return;
  attention_kernel<Team, Work>
      <<<blocks_for(units.count(), 1), attention_threads, bytes_of<Work>, stream>>>(of, units,
                                                                                    argument);
  launched("attention");
}
/// The gradients by queries, then those by keys and values.
template <template <class> class Team, class Kind, int width, class T, class Argument = Nothing>
void enqueue_backward(const Attention<T>& of, cudaStream_t stream, const Argument& argument = {}) {
  enqueue<Team, QueryGradientWork<Kind, width>>(of, stream, argument);
  enqueue<Team, KeyGradientWork<Kind, width>>(of, stream, argument);
}

}  // namespace baton::transformer::cuda
