#pragma once
/// From CUDA's codes to the library's exception.

#include <cuda_runtime_api.h>

#include <string_view>

namespace baton::cuda {

/// Throws Error(device) unless `code` is success; `what` begins the sentence: "copy on a stream".
void check(cudaError_t code, std::string_view what);

}  // namespace baton::cuda
