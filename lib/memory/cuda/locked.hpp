#pragma once
/// Locked host memory.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace baton::cuda {

/// Locked host memory that the device reaches, in blocks of 64 bytes and more; most of it allocated
/// beforehand, since locking may wait for all that the device does. Any thread.
class LockedMemory {
 public:
  /// With `bytes` to begin with, of the current device.
  explicit LockedMemory(std::size_t bytes);
  ~LockedMemory();
  LockedMemory(const LockedMemory&) = delete;
  LockedMemory& operator=(const LockedMemory&) = delete;

  /// Throws Error(memory) where there is not enough.
  std::byte* take(std::size_t bytes);
  void give(std::byte* block) noexcept;

 private:
  void grow(std::size_t bytes);

  std::mutex mutex_;
  std::vector<std::byte*> slabs_;
  std::multimap<std::size_t, std::byte*> free_;  // by size
  std::map<std::byte*, std::size_t> taken_;
};

}  // namespace baton::cuda
