#include "real.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace baton::nccl_abi {
namespace {

/// The library in which an address lies.
const void* library_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

/// NCCL's library by its name, if that is not this one.
void* opened() {
  static void* const handle = [] {
    const char* const named = std::getenv("BATON_NCCL_LIBRARY");
    return dlopen(named ? named : "libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
  }();
  return handle;
}

}  // namespace

bool off() {
  static const bool is_off = [] {
    const char* const setting = std::getenv("BATON_NCCL");
    return setting != nullptr && std::string_view(setting) == "off";
  }();
  return is_off;
}

void* real(const char* name, const void* own) {
  const void* const here = library_of(own);
  const auto of_another = [&](void* function) {
    return function != nullptr && library_of(function) != here ? function : nullptr;
  };
  if (void* const next = of_another(dlsym(RTLD_NEXT, name))) return next;
  void* const library = opened();
  return library ? of_another(dlsym(library, name)) : nullptr;
}

int refuse_newer(const char* name) {
  return guarded([&] {
    throw Error(ErrorCode::unsupported, std::string(name) +
                                            ": expected a call of NCCL 2.28, found one of a newer "
                                            "NCCL, which is not taken over");
  });
}

void say_passed_on(const char* name, bool found) noexcept {
  try {
    static std::mutex mutex;
    static std::set<std::string>& said = *new std::set<std::string>;
    const std::lock_guard lock(mutex);
    if (!said.insert(name).second) return;
  } catch (...) {  // no memory: it may be said again
  }
  std::fprintf(stderr, "baton: %s %s\n", name,
               found ? "is passed on to NCCL" : "is not taken over, and there is no NCCL");
}

}  // namespace baton::nccl_abi
