#pragma once
/// CUDA's errors as ours, of this library's own runtime, which would report them once more.

#include <cuda_runtime_api.h>

#include "memory/cuda/error.hpp"

namespace baton::transformer::cuda {

/// As baton::cuda's.
inline void check(cudaError_t code, std::string_view what) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  baton::cuda::check(code, what);
}
inline void check_memory(cudaError_t code, std::size_t bytes, std::string_view where) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  baton::cuda::check_memory(code, bytes, where);
}

}  // namespace baton::transformer::cuda
