#include "locked.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>

#include "baton/cuda_runtime.hpp"

namespace baton::cuda {
namespace {

constexpr std::size_t smallest = 64;

}  // namespace

LockedMemory::LockedMemory(std::size_t bytes) { grow(bytes); }

LockedMemory::~LockedMemory() {
  for (std::byte* slab : slabs_) cudaFreeHost(slab);
}

void LockedMemory::grow(std::size_t bytes) {
  void* slab = nullptr;
  check_memory(cudaHostAlloc(&slab, bytes, cudaHostAllocPortable | cudaHostAllocMapped), bytes,
               "locked host memory");
  slabs_.push_back(static_cast<std::byte*>(slab));
  free_.emplace(bytes, slabs_.back());
}

std::byte* LockedMemory::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes = std::bit_ceil(std::max(bytes, smallest));
  auto found = free_.lower_bound(bytes);
  if (found == free_.end()) {
    grow(std::max(bytes, std::size_t{4} << 20));
    found = free_.lower_bound(bytes);
  }
  std::size_t size = found->first;
  std::byte* const block = found->second;
  free_.erase(found);
  for (; size >= 2 * bytes; size /= 2) free_.emplace(size / 2, block + size / 2);
  taken_[block] = size;
  return block;
}

void LockedMemory::give(std::byte* block) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find(block);
  if (found == taken_.end()) return;
  free_.emplace(found->second, block);
  taken_.erase(found);
}

}  // namespace baton::cuda
