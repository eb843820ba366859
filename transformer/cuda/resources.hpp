#pragma once
/// The streams and the memory of an accelerator.

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <cstdint>
#include <memory>

#include "baton/cuda.hpp"
#include "baton/cuda_runtime.hpp"

namespace baton::transformer::cuda {

/// Two streams and a pool of memory on the current device.
class Resources {
 public:
  /// The current device is number `ordinal`.
  explicit Resources(int ordinal) : ordinal_(ordinal) {
    baton::cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    baton::cuda::check(cudaStreamCreateWithFlags(&exchange_stream_, cudaStreamNonBlocking),
                       "a stream");
    cudaMemPoolProps of{};
    of.allocType = cudaMemAllocationTypePinned;
    of.location.type = cudaMemLocationTypeDevice;
    of.location.id = ordinal;
    baton::cuda::check(cudaMemPoolCreate(&pool_, &of), "a memory pool");
    std::uint64_t keep = ~std::uint64_t{0};  // nothing is given back to the system while it lives
    baton::cuda::check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep),
                       "a memory pool");
    int devices = 0;
    baton::cuda::check(cudaGetDeviceCount(&devices), "the devices");
    for (int other = 0; other < devices; ++other) {  // messages between devices come from here
      int can = 0;
      if (other == ordinal || cudaDeviceCanAccessPeer(&can, other, ordinal) != cudaSuccess || !can)
        continue;
      cudaMemAccessDesc access{};
      access.location.type = cudaMemLocationTypeDevice;
      access.location.id = other;
      access.flags = cudaMemAccessFlagsProtReadWrite;
      baton::cuda::check(cudaMemPoolSetAccess(pool_, &access, 1), "a peer's access");
    }
  }
  ~Resources() {
    for (const cudaStream_t stream : {exchange_stream_, stream_})
      if (stream) cudaStreamSynchronize(stream);
    if (pool_) cudaMemPoolDestroy(pool_);
    for (const cudaStream_t stream : {exchange_stream_, stream_})
      if (stream) cudaStreamDestroy(stream);
  }
  Resources(const Resources&) = delete;
  Resources& operator=(const Resources&) = delete;

  int ordinal() const { return ordinal_; }
  cudaStream_t stream() const { return stream_; }
  cudaStream_t exchange_stream() const { return exchange_stream_; }
  /// At least one byte, in the order of stream().
  std::shared_ptr<void> allocate(std::size_t bytes) {
    const baton::cuda::CurrentDevice current(ordinal_);
    void* memory = nullptr;
    const std::size_t some = bytes > 0 ? bytes : 1;
    baton::cuda::check_memory(cudaMallocFromPoolAsync(&memory, some, pool_, stream_), some,
                              fmt::format("CUDA device {}", ordinal_));
    return {memory, [stream = stream_](void* gone) { cudaFreeAsync(gone, stream); }};
  }

 private:
  const int ordinal_;
  cudaStream_t stream_ = nullptr, exchange_stream_ = nullptr;
  cudaMemPool_t pool_ = nullptr;
};

}  // namespace baton::transformer::cuda
