#pragma once
/// Counts what a thread allocates, by whatever function.

#include <cstddef>

namespace support {

/// Counts this thread's allocations from its making on: calls of malloc, calloc, realloc,
/// posix_memalign, aligned_alloc and memalign, and so of operator new, in every library of the
/// program. Sources: allocations.cpp, which must be part of the program itself.
class AllocationCount {
 public:
  AllocationCount();
  ~AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;
  std::size_t count() const;
};

}  // namespace support
