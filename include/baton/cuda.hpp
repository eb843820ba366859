#pragma once
/// CUDA devices. In the library baton-cuda, which loads where there is no driver, too.

#include <memory>

#include "baton/device.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// How many CUDA devices this process sees; 0 where there is no driver.
int cuda_devices();

/// The CUDA device of this ordinal; a Stream is a cudaStream_t. All calls with one ordinal give the
/// same object. The first one loads all kernels and takes 64 MiB of the device's memory and 16 MiB
/// of locked host memory, since CUDA may wait for held streams when it loads or allocates later;
/// where collectives need more than that, it is allocated when they do. Throws Error(unsupported)
/// where there is no such device or it lacks stream memory operations or memory pools.
///
/// Streams that are refused (Device::check_stream()): those that are being captured; streams of
/// other devices; and those of the highest priority, which the library's own work has. The default
/// stream is this device's. The legacy one holds all streams that were not made as non-blocking,
/// and waits for them.
///
/// Streams share hardware queues: CUDA_DEVICE_MAX_CONNECTIONS of them, 8 by default, 32 at most. A
/// stream that is held blocks all that come after it in its queue, whatever their priority. So
/// where several ranks, or many streams, share a device, use messages that hold none:
/// thread_fused_transport(), or nccl_transport().
std::shared_ptr<Device> cuda_device(int ordinal = 0);

/// The ordinal of a device that cuda_device() gave. Throws Error(invalid_argument) for others.
int cuda_ordinal(const Device& device);

}  // namespace baton
#pragma GCC visibility pop
