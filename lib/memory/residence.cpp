#include "residence.hpp"

#include <dlfcn.h>

#include <cstdint>

namespace baton::host {
namespace {

// From the driver's stable interface, so that the build needs no CUDA.
using PointerGetAttribute = int(void* data, int attribute, unsigned long long address);
constexpr int memory_type = 2, is_managed = 8;
constexpr unsigned type_device = 2;

PointerGetAttribute* attribute_function() {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!driver) return nullptr;
  auto* const function =
      reinterpret_cast<PointerGetAttribute*>(dlsym(driver, "cuPointerGetAttribute"));
  dlclose(driver);  // the process that loaded it keeps its own reference
  return function;
}

}  // namespace

bool in_device_memory(const void* address) {
  PointerGetAttribute* const attribute = attribute_function();
  if (!attribute) return false;
  const auto at = static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(address));
  unsigned type = 0, managed = 0;
  if (attribute(&type, memory_type, at) != 0 || type != type_device) return false;
  return attribute(&managed, is_managed, at) != 0 || managed == 0;
}

}  // namespace baton::host
