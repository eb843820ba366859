#include "error.hpp"

#include <fmt/format.h>

#include "baton/error.hpp"

namespace baton::cuda {

void check(cudaError_t code, std::string_view what) {
  if (code == cudaSuccess) return;
  Error error(ErrorCode::device, fmt::format("{}: expected success, found CUDA's error {} ({}): {}",
                                             what, static_cast<int>(code), cudaGetErrorName(code),
                                             cudaGetErrorString(code)));
  error.backend_code = static_cast<int>(code);
  error.backend_text = fmt::format("{}: {}", cudaGetErrorName(code), cudaGetErrorString(code));
  cudaGetLastError();  // so that what is no fault of later calls is not reported by them
  throw error;
}

}  // namespace baton::cuda
