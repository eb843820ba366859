#pragma once

namespace baton::host {

/// Whether an address is in the memory of a CUDA device and out of the host's reach. False if the
/// process has not loaded CUDA's driver: then there is no such memory.
bool in_device_memory(const void* address);

}  // namespace baton::host
