#include <cstddef>
#include <cstdint>

namespace {
std::uint64_t first = 0, last = 0;
bool managed = false;
}  // namespace

// Looked up by name: no header declares them all.
#pragma GCC diagnostic ignored "-Wmissing-declarations"
extern "C" {

/// From now on, these addresses are a device's, which the host can reach or not.
void stand_in_driver_owns(const void* begin, std::size_t bytes, bool reached) {
  first = reinterpret_cast<std::uintptr_t>(begin);
  last = first + bytes;
  managed = reached;
}

int cuPointerGetAttribute(void* data, int attribute, unsigned long long address) {
  if (address < first || address >= last) return 1;  // CUDA_ERROR_INVALID_VALUE
  if (attribute == 2) {                              // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    *static_cast<unsigned*>(data) = 2;
  } else {
    *static_cast<unsigned*>(data) = managed ? 1 : 0;
  }
  return 0;
}
}
