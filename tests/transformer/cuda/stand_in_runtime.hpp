#pragma once
/// Stands in for the functions of CUDA's runtime and of cuBLASLt that transformer/cuda calls, on
/// the device of threads whose memory the host cannot touch.

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <vector>

#include "support/stand_in.hpp"

namespace support {

/// What cuda_device(0) and the runtime are from now on.
void stand_in_for_cuda(std::shared_ptr<StandInDevice> device);

/// The epilogues of all products since this was last called, in their order.
std::vector<cublasLtEpilogue_t> epilogues();

/// Gives a stream work.
void give(cudaStream_t stream, std::function<void()> work);
/// Where the host reads and writes what is at an address of the device.
void* seen_bytes(const void* address);
template <class T>
T* seen(T* address) {
  return static_cast<T*>(seen_bytes(address));
}

}  // namespace support
