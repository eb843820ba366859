#include "scratch_pool.hpp"

#include <bit>
#include <new>

namespace baton::execute {

std::size_t ScratchPool::size_class(std::size_t bytes) {
  return static_cast<std::size_t>(std::bit_width((bytes < alignment ? alignment : bytes) - 1));
}

std::byte* ScratchPool::take(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::size_t k = size_class(bytes);
  if (!free_[k].empty()) {
    std::byte* block = free_[k].back();
    free_[k].pop_back();
    return block;
  }
  free_[k].reserve(free_[k].size() + 8);  // so that give() does not allocate
  if (device_) return device_->allocate(std::size_t{1} << k);
  return static_cast<std::byte*>(::operator new (std::size_t{1} << k, std::align_val_t{alignment}));
}

void ScratchPool::give(std::byte* block, std::size_t bytes) noexcept {
  if (block) free_[size_class(bytes)].push_back(block);
}

ScratchPool::~ScratchPool() {
  for (const auto& list : free_) {
    for (std::byte* block : list) {
      if (device_) {
        device_->free(block);
      } else {
        ::operator delete (block, std::align_val_t{alignment});
      }
    }
  }
}

}  // namespace baton::execute
