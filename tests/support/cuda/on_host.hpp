#pragma once
/// The kernels' code, thread after thread on the host.

#include <concepts>
#include <cstdint>
#include <vector>

#include "memory/cuda/units.hpp"

namespace on_host {

/// Runs `thread_of(unit, thread)` as a launch would.
template <class Job, class Thread>
void for_threads(const baton::cuda::Batch<Job>& batch, Thread thread_of) {
  for (std::uint32_t unit = 0; unit < batch.units; ++unit)
    for (std::uint32_t thread = 0; thread < baton::cuda::threads; ++thread) thread_of(unit, thread);
}

/// Whether the op is defined on T.
template <class T, baton::OpKind op>
constexpr bool folds = std::integral<T> || op <= baton::OpKind::max;

template <class T, baton::OpKind op>
void fold_batch(const baton::cuda::Batch<baton::cuda::Strided<3>>& batch) {
  constexpr auto folded = op == baton::OpKind::avg ? baton::OpKind::sum : op;
  for_threads(batch, [&](auto unit, auto thread) {
    baton::cuda::fold_unit<folded, baton::cuda::Served<folded, T>>(batch, unit, thread);
  });
}

template <class T>
void divide_batch(const baton::cuda::Batch<baton::cuda::Strided<1>>& batch, int ranks) {
  for_threads(batch, [&](auto unit, auto thread) {
    baton::cuda::divide_unit<T>(batch, ranks, unit, thread);
  });
}

inline void copy_batch(const baton::cuda::Batch<baton::cuda::Strided<2>>& batch) {
  for_threads(batch, [&](auto unit, auto thread) { baton::cuda::copy_unit(batch, unit, thread); });
}

inline void turn_batch(const baton::cuda::Batch<baton::cuda::Tiles>& batch) {
  for (std::uint32_t unit = 0; unit < batch.units; ++unit) {
    std::vector<baton::cuda::Vector<16>> shared((batch.job_of(unit).shared_bytes() + 15) / 16);
    auto* const bytes = reinterpret_cast<std::byte*>(shared.data());
    for (std::uint32_t thread = 0; thread < baton::cuda::threads; ++thread)
      baton::cuda::tile_in(batch, unit, thread, bytes);
    for (std::uint32_t thread = 0; thread < baton::cuda::threads; ++thread)
      baton::cuda::tile_out(batch, unit, thread, bytes);
  }
}

}  // namespace on_host
