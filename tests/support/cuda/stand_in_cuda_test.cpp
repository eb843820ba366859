/// The stand-in for CUDA's runtime, by CUDA's calls.

#include "stand_in_cuda.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <numeric>
#include <vector>

namespace {

void ok(cudaError_t code) { CHECK(code == cudaSuccess); }
/// Refused, and told once as the last error.
void refused(cudaError_t code, cudaError_t expected) {
  CHECK(code == expected);
  CHECK(cudaGetLastError() == expected);
  CHECK(cudaGetLastError() == cudaSuccess);
}

template <class T = char>
T* memory_of(int device, std::size_t bytes) {
  void* memory = nullptr;
  ok(cudaSetDevice(device));
  ok(cudaMalloc(&memory, bytes));
  return static_cast<T*>(memory);
}
cudaStream_t stream_of(int device) {
  cudaStream_t stream = nullptr;
  ok(cudaSetDevice(device));
  ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

/// Holds a stream until it is let go.
struct Held {
  explicit Held(cudaStream_t stream) {
    ok(cuda_stand_in::give(stream, [this] { open.wait(false); }));
  }
  void let_go() {
    open = true;
    open.notify_all();
  }
  std::atomic<bool> open = false;
};

}  // namespace

TEST_CASE("memory goes there, to another device and back") {
  std::vector<int> data(1000), found(1000);
  std::iota(data.begin(), data.end(), 7);
  const std::size_t bytes = data.size() * sizeof(int);
  int* const first = memory_of<int>(0, bytes);
  int* const second = memory_of<int>(1, bytes);
  ok(cudaMemcpy(first, data.data(), bytes, cudaMemcpyHostToDevice));
  ok(cudaMemcpy(second, first, bytes, cudaMemcpyDeviceToDevice));
  ok(cudaMemset(second, 0xff, 4));
  ok(cudaMemcpy(found.data(), second, bytes, cudaMemcpyDefault));
  CHECK(found[0] == -1);
  found[0] = data[0];
  CHECK(found == data);
  cudaPointerAttributes attributes{};
  ok(cudaPointerGetAttributes(&attributes, second + 5));
  CHECK(attributes.type == cudaMemoryTypeDevice);
  CHECK(attributes.device == 1);
  ok(cudaPointerGetAttributes(&attributes, data.data()));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  ok(cudaFree(first));
  ok(cudaFree(second));
}

TEST_CASE("the program may change pageable memory after the call that copies it") {
  char* const memory = memory_of(0, 1);
  const cudaStream_t stream = stream_of(0);
  Held held(stream);
  char byte = 1;
  ok(cudaMemcpyAsync(memory, &byte, 1, cudaMemcpyDefault, stream));
  byte = 2;
  held.let_go();
  ok(cudaStreamSynchronize(stream));
  ok(cudaMemcpy(&byte, memory, 1, cudaMemcpyDefault));
  CHECK(byte == 1);
  ok(cudaStreamDestroy(stream));
  ok(cudaFree(memory));
}

TEST_CASE("wrong memory is refused") {
  char* const memory = memory_of(0, 100);
  std::vector<char> host(200);
  refused(cudaMemcpy(memory + 1, host.data(), 100, cudaMemcpyDefault), cudaErrorInvalidValue);
  refused(cudaMemcpy(host.data(), memory, 101, cudaMemcpyDefault), cudaErrorInvalidValue);
  refused(cudaMemcpy(host.data(), memory, 9, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  refused(cudaMemset(host.data(), 0, 1), cudaErrorInvalidValue);
  refused(cudaFree(memory + 1), cudaErrorInvalidValue);
  refused(cudaFreeHost(memory), cudaErrorInvalidValue);
  ok(cudaFree(memory));
  refused(cudaFree(memory), cudaErrorInvalidValue);
  refused(cudaMemcpy(host.data(), memory, 1, cudaMemcpyDefault), cudaErrorInvalidValue);
  void* too_much = nullptr;
  refused(cudaMalloc(&too_much, std::size_t{1} << 50), cudaErrorMemoryAllocation);
}

TEST_CASE("streams do their work in order, beside the host") {
  const cudaStream_t stream = stream_of(0), other = stream_of(0);
  cudaEvent_t start = nullptr, end = nullptr;
  ok(cudaEventCreate(&start));
  ok(cudaEventCreate(&end));
  ok(cudaEventQuery(start));  // never recorded
  Held held(stream);
  std::atomic<int> step = 0, seen = -1;
  ok(cudaEventRecord(start, stream));
  ok(cuda_stand_in::give(stream, [&] { step = 1; }));
  ok(cudaEventRecord(end, stream));
  ok(cudaStreamWaitEvent(other, end));
  ok(cuda_stand_in::give(other, [&] { seen = step.load(); }));
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  CHECK(cudaStreamQuery(other) == cudaErrorNotReady);
  CHECK(cudaEventQuery(end) == cudaErrorNotReady);
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaErrorNotReady);
  CHECK(step == 0);
  held.let_go();
  ok(cudaDeviceSynchronize());
  CHECK(seen == 1);
  ok(cudaStreamQuery(other));
  ok(cudaEventElapsedTime(&milliseconds, start, end));
  CHECK(milliseconds >= 0);
  ok(cudaEventDestroy(start));
  ok(cudaEventDestroy(end));
  ok(cudaStreamDestroy(stream));
  refused(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
  ok(cudaStreamDestroy(other));
}

TEST_CASE("unknown devices are refused") {
  int devices = 0;
  ok(cudaGetDeviceCount(&devices));
  REQUIRE(devices > 1);
  refused(cudaSetDevice(devices), cudaErrorInvalidDevice);
  refused(cudaSetDevice(-1), cudaErrorInvalidDevice);
  int value = 0;
  refused(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, devices),
          cudaErrorInvalidDevice);
}

TEST_CASE("only kernels of the host's are launched") {
  const cudaStream_t stream = stream_of(0);
  int argument = 41;
  void* arguments[] = {&argument};
  const auto unknown = reinterpret_cast<const void*>(&stream_of);
  refused(cudaLaunchKernel(unknown, 1, 1, arguments, 0, stream), cudaErrorNoKernelImageForDevice);
  cudaFuncAttributes attributes{};
  refused(cudaFuncGetAttributes(&attributes, unknown), cudaErrorInvalidDeviceFunction);
  static std::atomic<int> found = 0;
  const void* const kernel = cuda_stand_in::host_kernel([](void** all) -> std::function<void()> {
    return [value = *static_cast<int*>(all[0])] { found = value; };
  });
  ok(cudaFuncGetAttributes(&attributes, kernel));
  ok(cudaLaunchKernel(kernel, 1, 1, arguments, 0, stream));
  argument = 0;
  ok(cudaStreamSynchronize(stream));
  CHECK(found == 41);
  ok(cudaStreamDestroy(stream));
}

TEST_CASE("a global capture refuses unsafe calls of threads that are not relaxed") {
  const cudaStream_t stream = stream_of(0);
  cudaEvent_t event = nullptr;
  ok(cudaEventCreate(&event));
  ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  void* memory = nullptr;
  refused(cudaEventQuery(event), cudaErrorStreamCaptureUnsupported);
  refused(cudaMalloc(&memory, 1), cudaErrorStreamCaptureUnsupported);
  refused(cudaHostAlloc(&memory, 1, cudaHostAllocDefault), cudaErrorStreamCaptureUnsupported);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ok(cudaThreadExchangeStreamCaptureMode(&mode));
  ok(cudaEventQuery(event));
  ok(cudaThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == cudaStreamCaptureModeRelaxed);
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(stream, &graph));
  ok(cudaEventQuery(event));
  ok(cudaGraphDestroy(graph));
  ok(cudaEventDestroy(event));
  ok(cudaStreamDestroy(stream));
}

TEST_CASE("a captured stream takes no work") {
  const cudaStream_t stream = stream_of(0);
  char* const memory = memory_of(0, 1);
  ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  refused(cudaMemsetAsync(memory, 0, 1, stream), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  refused(cudaGraphInstantiate(&executable, graph, 0), cudaErrorNotSupported);
  ok(cudaGraphDestroy(graph));
  ok(cudaMemsetAsync(memory, 0, 1, stream));
  ok(cudaStreamDestroy(stream));
  ok(cudaFree(memory));
}
