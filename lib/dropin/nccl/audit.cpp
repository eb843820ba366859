/// LD_AUDIT: whoever asks the dynamic linker for libnccl.so.2 gets this library, also by dlopen()
/// and from folders that are written into programs.

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <string_view>

#include "own.hpp"

extern "C" {

unsigned int la_version(unsigned int version) {
  return version < LAV_CURRENT ? version : LAV_CURRENT;
}

char* la_objsearch(const char* name, uintptr_t* /*cookie*/, unsigned int /*flag*/) {
  const std::string_view path = name;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  const char* const real = std::getenv("BATON_NCCL_LIBRARY");
  if (baton::nccl_abi::off() || file != "libnccl.so.2" || (real != nullptr && path == real))
    return const_cast<char*>(name);
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&la_version), &own) == 0) return const_cast<char*>(name);
  return const_cast<char*>(own.dli_fname);
}

}  // extern "C"
