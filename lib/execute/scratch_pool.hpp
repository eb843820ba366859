#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "baton/device.hpp"

namespace baton::execute {

/// Reusable scratch memory of the host or a device: blocks of powers of two bytes, aligned to 64.
/// For one thread at a time.
class ScratchPool {
 public:
  /// At least `bytes` bytes with undefined contents; null for 0. Throws Error(memory) if a device
  /// has too little.
  std::byte* take(std::size_t bytes);
  /// Gives back a block of take(bytes).
  void give(std::byte* block, std::size_t bytes) noexcept;

  /// `device`, if not null, outlives the pool.
  explicit ScratchPool(Device* device = nullptr) : device_(device) {}
  ScratchPool(const ScratchPool&) = delete;
  ScratchPool& operator=(const ScratchPool&) = delete;
  ~ScratchPool();

 private:
  static constexpr std::size_t alignment = 64;
  static std::size_t size_class(std::size_t bytes);
  Device* device_;
  std::vector<std::vector<std::byte*>> free_{64};
};

}  // namespace baton::execute
