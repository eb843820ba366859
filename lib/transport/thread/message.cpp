#include "message.hpp"

#include <utility>

namespace baton::threads {

BufferPool::BufferPool(std::size_t bytes)
    : stride_((sizeof(Buffer) + bytes + alignof(Buffer) - 1) / alignof(Buffer) * alignof(Buffer)),
      storage_(std::make_unique_for_overwrite<std::byte[]>(count * stride_)) {}

Buffer* BufferPool::take() {
  if (free_ == nullptr) free_ = returned_.exchange(nullptr, std::memory_order_acquire);
  if (free_ != nullptr) return reinterpret_cast<Buffer*>(std::exchange(free_, free_->next));
  if (used_ == count) return nullptr;
  auto* buffer = new (storage_.get() + used_++ * stride_) Buffer;
  buffer->pool = this;
  return buffer;
}

void BufferPool::give(Buffer& buffer) {
  Entry* top = returned_.load(std::memory_order_relaxed);
  do buffer.entry.next = top;
  while (!returned_.compare_exchange_weak(top, &buffer.entry, std::memory_order_release,
                                          std::memory_order_relaxed));
}

}  // namespace baton::threads
