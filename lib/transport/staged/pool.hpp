#pragma once

#include <bit>
#include <memory>
#include <vector>

#include "baton/device.hpp"

namespace baton::staged {

/// Reusable host memory for copies to and from the device: blocks of powers of two bytes. For one
/// thread at a time.
class Pool {
 public:
  explicit Pool(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~Pool() {
    for (const auto& list : free_)
      for (std::byte* block : list) device_->free_host(block);
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  std::byte* take(std::size_t bytes) {
    auto& list = list_of(bytes);
    if (list.empty()) return device_->allocate_host(std::bit_ceil(bytes));
    std::byte* const block = list.back();
    list.pop_back();
    return block;
  }
  void give(std::byte* block, std::size_t bytes) { list_of(bytes).push_back(block); }

 private:
  std::vector<std::byte*>& list_of(std::size_t bytes) {
    return free_[static_cast<std::size_t>(std::bit_width(bytes - 1))];
  }

  std::shared_ptr<Device> device_;
  std::vector<std::vector<std::byte*>> free_{65};
};

}  // namespace baton::staged
