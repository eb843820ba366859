#pragma once
/// The devices under NCCL's interface: CUDA's in the library, stand-ins in tests.

#include <cstddef>
#include <memory>

#include "baton/device.hpp"

namespace baton::nccl_abi::platform {

int devices();  ///< that this process sees
/// The calling thread's current device. Throws Error(device).
int current_device();
/// The device of this ordinal. Throws Error(unsupported).
std::shared_ptr<Device> device(int ordinal);

/// Memory of the current device for the program. Throws Error(memory, device).
void* allocate(std::size_t bytes);
/// Frees memory of allocate(). Throws Error(device).
void free(void* memory);

}  // namespace baton::nccl_abi::platform
