#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "baton/device.hpp"

namespace baton::base {

/// Reusable blocks of memory: of powers of two bytes, aligned to 64. For one thread at a time.
class BlockPool {
 public:
  enum class Memory : std::uint8_t {
    host,
    device,
    staging,  ///< the host's, for a device's copies
  };
  /// `device`, which may be null for Memory::host, outlives the pool.
  explicit BlockPool(Memory memory = Memory::host, Device* device = nullptr)
      : memory_(memory), device_(device) {}
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool() {
    for (const auto& list : free_)
      for (std::byte* block : list) release(block);
  }

  /// At least `bytes` bytes with undefined contents; null for 0. Throws Error(memory) if a device
  /// has too little.
  std::byte* take(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    auto& list = list_of(bytes);
    if (list.empty()) {
      list.reserve(8);  // so that give() does not allocate
      return allocate(std::bit_ceil(std::max(bytes, alignment)));
    }
    std::byte* const block = list.back();
    list.pop_back();
    return block;
  }
  /// Gives back a block of take(bytes).
  void give(std::byte* block, std::size_t bytes) noexcept {
    if (block) list_of(bytes).push_back(block);
  }

 private:
  static constexpr std::size_t alignment = 64;

  std::vector<std::byte*>& list_of(std::size_t bytes) {
    return free_[static_cast<std::size_t>(std::bit_width(std::max(bytes, alignment) - 1))];
  }
  std::byte* allocate(std::size_t bytes) {
    if (memory_ == Memory::device) return device_->allocate(bytes);
    if (memory_ == Memory::staging) return device_->allocate_host(bytes);
    return static_cast<std::byte*>(::operator new (bytes, std::align_val_t{alignment}));
  }
  void release(std::byte* block) noexcept {
    if (memory_ == Memory::device) return device_->free(block);
    if (memory_ == Memory::staging) return device_->free_host(block);
    ::operator delete (block, std::align_val_t{alignment});
  }

  const Memory memory_;
  Device* const device_;
  std::vector<std::vector<std::byte*>> free_{64};
};

}  // namespace baton::base
