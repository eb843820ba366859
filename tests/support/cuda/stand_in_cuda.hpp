#pragma once
/// What tests may ask of the stand-in for CUDA's runtime, beside CUDA's own calls.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

namespace cuda_stand_in {

/// A kernel on the host: reads the arguments of a launch at once, as they go when the launch
/// returns, and returns the launch's work.
using HostKernel = std::function<void()> (*)(void** arguments);

/// The kernel for cudaLaunchKernel(), which refuses all that this function has not returned.
const void* host_kernel(HostKernel kernel);

/// Where the host may read and write the memory at an address of any device's. Other addresses
/// stay.
std::byte* host_view(const void* address);

/// Gives work of the host's to a stream. It may touch host_view() of devices' memory.
cudaError_t give(cudaStream_t stream, std::function<void()> work);

}  // namespace cuda_stand_in
