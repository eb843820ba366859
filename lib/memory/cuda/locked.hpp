#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace baton::cuda {

/// Locked host memory that the device can access, in blocks of at least 64 bytes. Most of it is
/// allocated in advance, since locking may wait for all work of the device. For any thread.
class LockedMemory {
 public:
  /// Allocates `bytes` for the current device.
  explicit LockedMemory(std::size_t bytes);
  ~LockedMemory();
  LockedMemory(const LockedMemory&) = delete;
  LockedMemory& operator=(const LockedMemory&) = delete;

  /// Throws Error(memory) if there is too little.
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
