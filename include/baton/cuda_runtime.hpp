#pragma once
/// For CUDA code of your own: the current device, and CUDA's errors as the library's exception.
/// Opt-in: needs CUDA's headers.
///
/// All of it is inline and hidden. Every shared library that is linked with CUDA's static runtime
/// has a runtime of its own, which keeps the last error: these functions talk to the runtime of the
/// library that includes them.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "baton/error.hpp"
#include "baton/export.hpp"

namespace baton::cuda {

/// Throws Error(device), with CUDA's number and text, unless `code` is success. `what` begins the
/// sentence: "a copy on a stream". CUDA will not report the error again.
BATON_HIDDEN inline void check(cudaError_t code, std::string_view what) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  const std::string text = std::string(cudaGetErrorName(code)) + ": " + cudaGetErrorString(code);
  const int number = static_cast<int>(code);
  Error error(ErrorCode::device, std::string(what) + ": expected success, found CUDA's error " +
                                     std::to_string(number) + ", " + text);
  error.backend_code = number;
  error.backend_text = text;
  throw error;
}

/// The same of an allocation of so many bytes; throws Error(memory) where there was not enough.
BATON_HIDDEN inline void check_memory(cudaError_t code, std::size_t bytes, std::string_view where) {
  if (code != cudaErrorMemoryAllocation) return check(code, where);
  static_cast<void>(cudaGetLastError());
  Error error(ErrorCode::memory, "expected " + std::to_string(bytes) + " more bytes of memory of " +
                                     std::string(where) + ", found too little");
  error.backend_code = static_cast<int>(code);
  error.backend_text = cudaGetErrorString(code);
  throw error;
}

/// The driver's function of this name, as CUDA 12 has it, looked up so that nothing links the
/// driver; null if there is none.
BATON_HIDDEN inline void* driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t code =
      cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &result);
  return code == cudaSuccess && result == cudaDriverEntryPointSuccess ? function : nullptr;
}

/// Makes a device the thread's current one for as long as this lives.
class BATON_HIDDEN CurrentDevice {
 public:
  /// Makes it current. Throws Error(device) where there is no such device.
  explicit CurrentDevice(int ordinal) {
    check(cudaGetDevice(&before_), "the current device");
    if (before_ != ordinal) check(cudaSetDevice(ordinal), "a device as the current one");
    changed_ = before_ != ordinal;
  }
  ~CurrentDevice() {
    if (changed_) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace baton::cuda
