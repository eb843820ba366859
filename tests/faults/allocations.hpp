#pragma once
/// A failing allocator, and a count of what is not freed. allocations.cpp must be part of the
/// program itself: it replaces operator new.

#include <atomic>
#include <cstdint>

namespace faults {

/// From its making on, this thread's allocation with this number, from 0, throws std::bad_alloc.
class FailingAllocation {
 public:
  /// `happened` becomes true before other threads can see anything of it.
  FailingAllocation(int number, std::atomic<bool>& happened);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
};

/// Blocks of operator new that all threads have and have not freed.
std::int64_t live_blocks();

}  // namespace faults
