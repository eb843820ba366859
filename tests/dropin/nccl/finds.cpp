/// Where a program finds NCCL's functions: by its linker, or by dlopen().
///
/// Usage: finds_linked, or finds_opened LIBRARY
/// Prints the file that has ncclGetVersion, the version, and what ncclCommInitAll and a function
/// that is passed on say.

#include <dlfcn.h>
#include <nccl.h>

#include <cstdio>

int main(int argc, char** argv) {
  void* const library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : RTLD_DEFAULT;
  if (argc > 1 && library == nullptr) {
    std::printf("none: %s\n", dlerror());
    return 1;
  }
  const auto get_version =
      reinterpret_cast<decltype(&ncclGetVersion)>(dlsym(library, "ncclGetVersion"));
  const auto slots = reinterpret_cast<int (*)(int, int)>(dlsym(library, "ncclLLA2ACalcSlots"));
  Dl_info info{};
  int version = 0;
  if (get_version == nullptr || slots == nullptr || get_version(&version) != ncclSuccess ||
      dladdr(reinterpret_cast<void*>(get_version), &info) == 0)
    return 1;
  std::printf("%s\n%d\n%d\n", info.dli_fname, version, slots(8, 8));
  return 0;
}
