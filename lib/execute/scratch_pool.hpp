#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "baton/device.hpp"

namespace baton::execute {

/// Scratch memory that is used again and again: blocks of powers of two bytes, aligned to 64; the
/// host's or a device's. Not for several threads at once.
class ScratchPool {
 public:
  /// At least `bytes` bytes with undefined contents; null for 0. Throws Error(memory) where a
  /// device has not enough.
  std::byte* take(std::size_t bytes);
  /// Returns what take(bytes) gave.
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
