#include "machine.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "stand_in_cuda.hpp"

namespace cuda_stand_in {
namespace {

constexpr int most_devices = 64;

int number_in(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

/// Streams that programs made, and default ones. Lives as long as the process, as do devices.
struct Streams {
  std::mutex mutex;
  std::map<cudaStream_t, StreamState> all;
  std::array<StreamState, most_devices> legacy;
};
Streams& known() {
  static Streams& streams = *new Streams;
  return streams;
}

thread_local int current = 0;
thread_local cudaError_t last_error = cudaSuccess;

/// The calling thread's default streams, by device.
struct OfThread {
  std::map<int, StreamState> all;
  ~OfThread() {
    const std::lock_guard lock(known().mutex);
    for (const auto& [device, stream] : all) known().all.erase(stream.get());
  }
};
thread_local OfThread of_thread;

StreamState entered(StreamState stream) {
  Streams& here = known();
  const std::lock_guard lock(here.mutex);
  here.all[stream.get()] = stream;
  return stream;
}

}  // namespace

void keep_last_error(cudaError_t code) { last_error = code; }

std::shared_mutex& copies_to_pageable() {
  static std::shared_mutex& mutex = *new std::shared_mutex;
  return mutex;
}

int devices() {
  static const int count = std::min(number_in("STAND_IN_DEVICES", 4), most_devices);
  return count;
}

int current_device() { return current; }

void check_device(int ordinal) {
  require(ordinal >= 0 && ordinal < devices(), cudaErrorInvalidDevice);
}

support::StandInDevice& device(int ordinal) {
  static std::mutex mutex;
  static std::array<support::StandInDevice*, most_devices> all{};
  const std::lock_guard lock(mutex);
  support::StandInDevice*& one = all.at(static_cast<std::size_t>(ordinal));
  if (one == nullptr) {
    support::StandInOptions options;
    options.memory = device_bytes;
    options.channels = number_in("CUDA_DEVICE_MAX_CONNECTIONS", 0);
    one = new support::StandInDevice(options);
  }
  return *one;
}

std::vector<StreamState> streams(int ordinal) {
  Streams& here = known();
  const std::lock_guard lock(here.mutex);
  std::vector<StreamState> found;
  for (const auto& [handle, stream] : here.all)
    if (stream->device == ordinal) found.push_back(stream);
  return found;
}

std::atomic<int>& global_captures() {
  static std::atomic<int> count = 0;
  return count;
}
cudaStreamCaptureMode& capture_mode() {
  thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}
void check_captures() {
  require(global_captures() == 0 || capture_mode() == cudaStreamCaptureModeRelaxed,
          cudaErrorStreamCaptureUnsupported);
}

StreamState stream_of(cudaStream_t handle) {
  Streams& here = known();
  if (handle == nullptr || handle == cudaStreamLegacy) {
    const auto at = static_cast<std::size_t>(current);
    std::unique_lock lock(here.mutex);
    if (!here.legacy[at]) {
      here.legacy[at] = std::make_shared<CUstream_st>(current, cudaStreamDefault, least_priority);
      here.all[here.legacy[at].get()] = here.legacy[at];
    }
    return here.legacy[at];
  }
  if (handle == cudaStreamPerThread) {
    StreamState& own = of_thread.all[current];
    if (!own)
      own = entered(std::make_shared<CUstream_st>(current, cudaStreamDefault, least_priority));
    return own;
  }
  const std::lock_guard lock(here.mutex);
  const auto found = here.all.find(handle);
  require(found != here.all.end(), cudaErrorInvalidResourceHandle);
  return found->second;
}

StreamState stream_for_work(cudaStream_t handle) {
  StreamState stream = stream_of(handle);
  require(!stream->captured, cudaErrorStreamCaptureUnsupported);
  return stream;
}

std::byte* host_view(const void* address) { return device(current).host_view(address); }

cudaError_t give(cudaStream_t stream, std::function<void()> work) {
  return answer([&] { stream_for_work(stream)->give(std::move(work)); });
}

}  // namespace cuda_stand_in

using namespace cuda_stand_in;

CUstream_st::CUstream_st(int its_device, unsigned its_flags, int its_priority)
    : device(its_device), priority(its_priority), flags(its_flags) {
  auto& on = cuda_stand_in::device(device);
  // CUDA's streams of the greatest priority have hardware queues of their own.
  queue = priority == greatest_priority ? on.make_stream() : on.make_user_stream();
}
CUstream_st::~CUstream_st() { cuda_stand_in::device(device).end_stream(queue); }

void CUstream_st::give(std::function<void()> work) {
  ++given;
  cuda_stand_in::device(device).run(queue, [this, work = std::move(work)] {
    work();
    ++done;
  });
}
void CUstream_st::synchronize() { cuda_stand_in::device(device).synchronize(queue); }

extern "C" {

cudaError_t cudaGetDevice(int* ordinal) {
  *ordinal = current_device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int ordinal) {
  return answer([&] {
    check_device(ordinal);
    current = ordinal;
  });
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return answer([&] {
    priority = std::clamp(priority, greatest_priority, least_priority);
    *stream = entered(std::make_shared<CUstream_st>(current, flags, priority)).get();
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return answer([&] {
    require(stream != nullptr && stream != cudaStreamLegacy && stream != cudaStreamPerThread,
            cudaErrorInvalidResourceHandle);
    const StreamState last = stream_of(stream);
    const std::lock_guard lock(known().mutex);
    known().all.erase(stream);
  });
}

}  // extern "C"
