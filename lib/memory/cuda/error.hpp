#pragma once
/// From CUDA's codes to the library's exception.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string_view>

namespace baton::cuda {

/// Throws Error(device) unless `code` is success; `what` begins the sentence: "copy on a stream".
void check(cudaError_t code, std::string_view what);

/// The same of an allocation; throws Error(memory) where there was not enough.
void check_memory(cudaError_t code, std::size_t bytes, std::string_view where);

}  // namespace baton::cuda
