/// Memory of devices and of the host: CUDA's calls that allocate, copy and fill.

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "machine.hpp"
#include "stand_in_cuda.hpp"

/// A cudaMemPool_t points to it.
struct CUmemPoolHandle_st {
  int device;
};

namespace cuda_stand_in {
namespace {

constexpr std::align_val_t page{4096};

struct Blocks {
  std::mutex mutex;
  std::map<std::uintptr_t, Block> all;  // by where they begin
};
Blocks& blocks() {
  static Blocks& here = *new Blocks;
  return here;
}

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

void* entered(void* memory, std::size_t bytes, cudaMemoryType type, int ordinal) {
  const std::lock_guard lock(blocks().mutex);
  blocks().all[number(memory)] = {number(memory), bytes, type, ordinal};
  return memory;
}

void* allocated(std::size_t bytes, int ordinal) {
  return entered(device(ordinal).allocate(bytes), bytes, cudaMemoryTypeDevice, ordinal);
}

void* host_allocated(std::size_t bytes, cudaMemoryType type) {
  return entered(::operator new(std::max<std::size_t>(bytes, 1), page), bytes, type,
                 current_device());
}

/// Removes the block that begins there.
Block removed(const void* memory) {
  const std::lock_guard lock(blocks().mutex);
  const auto found = blocks().all.find(number(memory));
  require(found != blocks().all.end(), cudaErrorInvalidValue);
  const Block block = found->second;
  blocks().all.erase(found);
  return block;
}

/// Whether memory of this type may be on this side of a copy.
bool fits(cudaMemoryType type, bool on_device) {
  return type == cudaMemoryTypeManaged || (type == cudaMemoryTypeDevice) == on_device;
}

void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, CUstream_st& stream) {
  if (bytes == 0) return;
  const Block target = block_of(to, bytes), source = block_of(from, bytes);
  if (kind != cudaMemcpyDefault) {
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    require(fits(target.type, to_device) && fits(source.type, from_device), cudaErrorInvalidValue);
  }
  std::byte* const into = host_view(to);
  const std::byte* const at = host_view(from);
  if (source.type == cudaMemoryTypeUnregistered) {  // the program may change it after the call
    stream.give([into, bytes = std::vector<std::byte>(at, at + bytes)] {
      std::memcpy(into, bytes.data(), bytes.size());
    });
  } else if (target.type == cudaMemoryTypeUnregistered) {
    const std::lock_guard lock(copies_to_pageable());
    stream.give([=] { std::memmove(into, at, bytes); });
    stream.synchronize();
  } else {
    stream.give([=] { std::memmove(into, at, bytes); });
  }
}

void fill(void* memory, int value, std::size_t bytes, CUstream_st& stream) {
  const Block block = block_of(memory, bytes);
  require(fits(block.type, true), cudaErrorInvalidValue);
  stream.give([into = host_view(memory), value, bytes] { std::memset(into, value, bytes); });
}

}  // namespace

Block block_of(const void* address, std::size_t bytes) {
  const std::uintptr_t at = number(address);
  const std::lock_guard lock(blocks().mutex);
  const auto after = blocks().all.upper_bound(at);
  if (after != blocks().all.begin()) {
    const Block& block = std::prev(after)->second;
    if (at < block.begin + std::max<std::size_t>(block.bytes, 1)) {
      require(bytes <= block.begin + block.bytes - at, cudaErrorInvalidValue);
      return block;
    }
  }
  require(device(current_device()).residence(address) == baton::Residence::host,
          cudaErrorInvalidValue);
  return {};
}

}  // namespace cuda_stand_in

using namespace cuda_stand_in;

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return answer([&] {
    check_captures();
    *memory = bytes == 0 ? nullptr : allocated(bytes, current_device());
  });
}
cudaError_t cudaFree(void* memory) {
  return answer([&] {
    if (memory == nullptr) return;
    const Block block = block_of(memory);
    require(block.begin == number(memory) && fits(block.type, true), cudaErrorInvalidValue);
    for (const StreamState& stream : streams(block.device)) stream->synchronize();
    removed(memory);
    if (block.type == cudaMemoryTypeManaged) return ::operator delete(memory, page);
    device(block.device).free(static_cast<std::byte*>(memory));
  });
}
cudaError_t cudaMallocManaged(void** memory, std::size_t bytes, unsigned) {
  return answer([&] { *memory = host_allocated(bytes, cudaMemoryTypeManaged); });
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return answer([&] {
    check_captures();
    *memory = host_allocated(bytes, cudaMemoryTypeHost);
  });
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return cudaHostAlloc(memory, bytes, cudaHostAllocDefault);
}
cudaError_t cudaFreeHost(void* memory) {
  return answer([&] {
    if (memory == nullptr) return;
    require(block_of(memory).type == cudaMemoryTypeHost, cudaErrorInvalidValue);
    removed(memory);
    ::operator delete(memory, page);
  });
}
cudaError_t cudaHostGetDevicePointer(void** reached, void* memory, unsigned) {
  return answer([&] {
    require(block_of(memory).type == cudaMemoryTypeHost, cudaErrorInvalidValue);
    *reached = memory;
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* of) {
  return answer([&] {
    check_device(of->location.id);
    *pool = new CUmemPoolHandle_st{of->location.id};
  });
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  delete pool;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, std::size_t) {
  return cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  return answer([&] {
    stream_for_work(stream);
    *memory = allocated(bytes, pool->device);
  });
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  return answer([&] {
    if (memory == nullptr) return;
    require(block_of(memory).type == cudaMemoryTypeDevice, cudaErrorInvalidValue);
    const StreamState after = stream_for_work(stream);
    const Block block = removed(memory);
    after->give([=] { device(block.device).free(static_cast<std::byte*>(memory)); });
  });
}

cudaError_t cudaMemGetInfo(std::size_t* unused, std::size_t* all) {
  return answer([&] {
    *all = device_bytes;
    *unused = device_bytes - device(current_device()).allocated();
  });
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return answer([&] {
    const Block block = block_of(address);
    void* const pointer = const_cast<void*>(address);
    *attributes = {};
    attributes->type = block.type;
    attributes->device = block.type == cudaMemoryTypeUnregistered ? -2 : block.device;
    if (block.type == cudaMemoryTypeUnregistered) return;
    attributes->devicePointer = pointer;
    if (block.type != cudaMemoryTypeDevice) attributes->hostPointer = pointer;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return answer([&] { copy(to, from, bytes, kind, *stream_for_work(stream)); });
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return answer([&] {
    const StreamState stream = stream_for_work(nullptr);
    copy(to, from, bytes, kind, *stream);
    stream->synchronize();
  });
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return answer([&] { fill(memory, value, bytes, *stream_for_work(stream)); });
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  return cudaMemsetAsync(memory, value, bytes, nullptr);
}

}  // extern "C"
