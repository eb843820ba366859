#include "error.hpp"

#include <fmt/core.h>

#include "baton/error.hpp"

namespace baton::cuda {

void check(cudaError_t code, std::string_view what) {
  if (code == cudaSuccess) return;
  const std::string text = fmt::format("{}: {}", cudaGetErrorName(code), cudaGetErrorString(code));
  const int number = static_cast<int>(code);
  Error error(ErrorCode::device,
              fmt::format("{}: expected success, found CUDA's error {}, {}", what, number, text));
  error.backend_code = number;
  error.backend_text = text;
  static_cast<void>(cudaGetLastError());  // or later calls would report it again
  throw error;
}

void check_memory(cudaError_t code, std::size_t bytes, std::string_view where) {
  if (code != cudaErrorMemoryAllocation) return check(code, where);
  static_cast<void>(cudaGetLastError());
  Error error(
      ErrorCode::memory,
      fmt::format("expected {} more bytes of memory of {}, found too little", bytes, where));
  error.backend_code = static_cast<int>(code);
  error.backend_text = cudaGetErrorString(code);
  throw error;
}

}  // namespace baton::cuda
