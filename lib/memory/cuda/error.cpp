#include "error.hpp"

#include <fmt/format.h>

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

}  // namespace baton::cuda
