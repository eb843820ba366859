#include "allocations.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> live = 0;
thread_local int until_failure = -1;
thread_local std::atomic<bool>* failed = nullptr;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (until_failure >= 0 && until_failure-- == 0) {
    *failed = true;
    throw std::bad_alloc();
  }
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const block = alignment <= alignof(std::max_align_t)
                          ? std::malloc(bytes == 0 ? 1 : bytes)
                          : std::aligned_alloc(alignment, rounded);
  if (!block) throw std::bad_alloc();
  live.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void release(void* block) {
  if (!block) return;
  live.fetch_sub(1, std::memory_order_relaxed);
  std::free(block);
}

}  // namespace

namespace faults {

FailingAllocation::FailingAllocation(int number, std::atomic<bool>& happened) {
  failed = &happened;
  until_failure = number;
}
FailingAllocation::~FailingAllocation() { until_failure = -1; }

std::int64_t live_blocks() { return live; }

}  // namespace faults

void* operator new(std::size_t bytes) { return allocate(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { release(block); }
void operator delete(void* block, std::size_t) noexcept { release(block); }
void operator delete(void* block, std::align_val_t) noexcept { release(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { release(block); }
