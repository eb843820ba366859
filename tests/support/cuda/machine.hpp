#pragma once
/// The pretended machine under CUDA's calls: devices, streams and blocks of memory.

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <shared_mutex>
#include <vector>

#include "baton/error.hpp"
#include "support/stand_in.hpp"

/// A cudaStream_t points to it.
struct CUstream_st {
  int device = 0, priority = 0;
  unsigned flags = 0;
  baton::Stream queue = nullptr;  ///< of the stand-in device
  std::atomic<std::int64_t> given = 0, done = 0;
  std::atomic<bool> captured = false;
  bool captured_globally = false;

  CUstream_st(int its_device, unsigned its_flags, int its_priority);
  ~CUstream_st();
  CUstream_st(const CUstream_st&) = delete;
  CUstream_st& operator=(const CUstream_st&) = delete;

  void give(std::function<void()> work);
  void synchronize();
};

namespace cuda_stand_in {

using StreamState = std::shared_ptr<CUstream_st>;

/// As on H100. The library's own streams have the greatest.
inline constexpr int least_priority = 0, greatest_priority = -5;
inline constexpr std::size_t device_bytes = std::size_t{8} << 30;

/// What a call returns instead of cudaSuccess.
struct Refusal {
  cudaError_t code;
};
inline void require(bool holds, cudaError_t code) {
  if (!holds) throw Refusal{code};
}
void keep_last_error(cudaError_t code);
/// Held by a copy to pageable memory until its stream has done it; all other calls wait meanwhile.
std::shared_mutex& copies_to_pageable();

/// Calls it; what it throws becomes the result.
template <class Call>
cudaError_t answer(const Call& call) noexcept {
  cudaError_t code = cudaSuccess;
  copies_to_pageable().lock_shared();
  copies_to_pageable().unlock_shared();
  try {
    call();
  } catch (const Refusal& refusal) {
    code = refusal.code;
  } catch (const baton::Error& error) {
    code =
        error.code == baton::ErrorCode::memory ? cudaErrorMemoryAllocation : cudaErrorLaunchFailure;
  } catch (const std::bad_alloc&) {
    code = cudaErrorMemoryAllocation;
  } catch (...) {
    code = cudaErrorUnknown;
  }
  if (code != cudaSuccess && code != cudaErrorNotReady) keep_last_error(code);
  return code;
}

int devices();                                  ///< STAND_IN_DEVICES, or 4
int current_device();                           ///< of the calling thread
support::StandInDevice& device(int ordinal);    ///< begins at the first call
void check_device(int ordinal);                 ///< refuses it unless there is such a device
std::vector<StreamState> streams(int ordinal);  ///< of a device

/// Global captures under way, and what the calling thread may do meanwhile.
std::atomic<int>& global_captures();
cudaStreamCaptureMode& capture_mode();
/// Refuses what CUDA calls unsafe while a stream is captured globally, unless the thread is
/// relaxed.
void check_captures();

/// The stream of a handle; default streams are of the current device.
StreamState stream_of(cudaStream_t handle);
/// The same, for work; refused while the stream is being captured.
StreamState stream_for_work(cudaStream_t handle);

struct Block {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  cudaMemoryType type = cudaMemoryTypeUnregistered;
  int device = 0;
};
/// The block of memory around an address; refuses `bytes` beyond its end, and freed memory. Of type
/// cudaMemoryTypeUnregistered for all other memory of the host.
Block block_of(const void* address, std::size_t bytes = 0);

}  // namespace cuda_stand_in
