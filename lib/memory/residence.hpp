#pragma once

namespace baton::host {

/// Whether an address is in the memory of a CUDA device where the host cannot reach it. False where
/// the process has not loaded CUDA's driver, without which there is no such memory.
bool in_device_memory(const void* address);

}  // namespace baton::host
