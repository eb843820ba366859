#include "allocations.hpp"

#include <cerrno>
#include <cstdint>

#include "sanitizer.hpp"

namespace {

thread_local bool counting = false;
thread_local std::size_t counted = 0;

void count_one() {
  if (counting) ++counted;
}

}  // namespace

namespace support {

AllocationCount::AllocationCount() {
  counted = 0;
  counting = true;
}
AllocationCount::~AllocationCount() { counting = false; }
std::size_t AllocationCount::count() const { return counted; }

}  // namespace support

#ifdef UNDER_SANITIZER

// A sanitizer's allocator calls hooks instead.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*,
                                                                  std::size_t),
                                                         void (*)(const volatile void*));
namespace {
[[maybe_unused]] const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t) { count_one(); }, [](const volatile void*) {});
}

#else

// The program's definitions come before the C library's, for all libraries.
// Looked up by name: no header declares them all.
#pragma GCC diagnostic ignored "-Wmissing-declarations"
extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  count_one();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  count_one();
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  count_one();
  return __libc_realloc(old, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count_one();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count_one();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  count_one();
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}

}  // extern "C"

#endif
