/// CUDA's calls for streams, events and captures.

#include <chrono>
#include <mutex>
#include <thread>

#include "machine.hpp"

namespace cuda_stand_in {

/// A point in a stream's work.
struct Point {
  std::atomic<bool> reached = false;
  std::chrono::steady_clock::time_point when;  // if reached
};

}  // namespace cuda_stand_in

/// A cudaEvent_t points to it.
struct CUevent_st {
  unsigned flags = 0;
  std::mutex mutex;
  std::shared_ptr<cuda_stand_in::Point> last;  // where it was last recorded; null: never

  std::shared_ptr<cuda_stand_in::Point> point() {
    const std::lock_guard lock(mutex);
    return last;
  }
};

/// A cudaGraph_t points to it. No capture takes work, so it is empty.
struct CUgraph_st {};

using namespace cuda_stand_in;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, least_priority);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, least_priority);
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return answer([&] { *priority = stream_of(stream)->priority; });
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return answer([&] { *flags = stream_of(stream)->flags; });
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return answer([&] { *device = stream_of(stream)->device; });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return answer([&] {
    check_captures();
    stream_for_work(stream)->synchronize();
  });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return answer([&] {
    const StreamState asked = stream_for_work(stream);
    require(asked->done == asked->given, cudaErrorNotReady);
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return answer([&] {
    const auto point = event->point();
    if (point) stream_for_work(stream)->give([point] { point->reached.wait(false); });
  });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void* argument) {
  return answer([&] { stream_for_work(stream)->give([=] { call(argument); }); });
}
cudaError_t cudaDeviceSynchronize() {
  return answer([&] {
    for (const StreamState& stream : streams(current_device())) stream->synchronize();
  });
}
cudaError_t cudaDeviceReset() { return cudaDeviceSynchronize(); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return answer([&] { *event = new CUevent_st{.flags = flags, .mutex = {}, .last = {}}; });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return answer([&] {
    const StreamState on = stream_for_work(stream);
    auto point = std::make_shared<Point>();
    on->give([point] {
      point->when = std::chrono::steady_clock::now();
      point->reached = true;
      point->reached.notify_all();
    });
    const std::lock_guard lock(event->mutex);
    event->last = std::move(point);
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return answer([&] {
    check_captures();
    const auto point = event->point();
    require(!point || point->reached, cudaErrorNotReady);
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return answer([&] {
    if (const auto point = event->point()) point->reached.wait(false);
  });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return answer([&] {
    const auto from = start->point(), to = end->point();
    require(from && to && !((start->flags | end->flags) & cudaEventDisableTiming),
            cudaErrorInvalidResourceHandle);
    require(from->reached && to->reached, cudaErrorNotReady);
    *milliseconds = std::chrono::duration<float, std::milli>(to->when - from->when).count();
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return answer([&] {
    const StreamState state = stream_for_work(stream);
    state->captured_globally = mode == cudaStreamCaptureModeGlobal;
    if (state->captured_globally) ++global_captures();
    state->captured = true;
  });
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, capture_mode());
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return answer([&] {
    *status =
        stream_of(stream)->captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return answer([&] {
    const StreamState state = stream_of(stream);
    require(state->captured.exchange(false), cudaErrorIllegalState);
    if (state->captured_globally) --global_captures();
    *graph = new CUgraph_st;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long) {
  return answer([] { throw Refusal{cudaErrorNotSupported}; });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) {
  return answer([] { throw Refusal{cudaErrorNotSupported}; });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) {
  return answer([] { throw Refusal{cudaErrorNotSupported}; });
}

}  // extern "C"
