#pragma once
/// CUDA devices. In the library baton-cuda, which loads where there is no driver, too.

#include <memory>

#include "baton/device.hpp"
#include "baton/export.hpp"

namespace BATON_API baton {

/// How many CUDA devices this process sees; 0 where there is no driver.
int cuda_devices();

/// The CUDA device of this ordinal; a Stream is a cudaStream_t. All calls with one ordinal give the
/// same object. The first one loads all kernels and takes 64 MiB of the device's memory and 16 MiB
/// of locked host memory, since CUDA may wait for held streams when it loads or allocates later;
/// where collectives need more than that, it is allocated when they do. Throws Error(unsupported)
/// where there is no such device or it lacks stream memory operations or memory pools.
///
/// Streams that are refused (Device::check_stream()): the legacy default stream, which waits for
/// all others; streams that are being captured; streams of other devices; and those of the highest
/// priority, which the library's own work has, so that no held stream stands before it.
std::shared_ptr<Device> cuda_device(int ordinal = 0);

/// The ordinal of a device that cuda_device() gave. Throws Error(invalid_argument) for others.
int cuda_ordinal(const Device& device);

}  // namespace baton
