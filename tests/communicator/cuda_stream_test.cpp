/// Collectives in a CUDA device's streams. Exit code 77 where there is no device.

#define DOCTEST_CONFIG_IMPLEMENT
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "baton/cuda.hpp"
#include "baton/cuda_runtime.hpp"
#include "baton/error.hpp"
#include "baton/thread.hpp"
#include "stream_cases.hpp"

using namespace baton;
using namespace stream_cases;

namespace {

cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream); }

TestDevice test_device() {
  return {cuda_device(0),
          [] {
            cudaStream_t stream = nullptr;
            cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
            return static_cast<Stream>(stream);
          },
          [](std::byte* to, const void* from, std::size_t bytes) {
            cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamPerThread),
                        "copying there");
            cuda::check(cudaStreamSynchronize(cudaStreamPerThread), "copying there");
          },
          [](void* to, const std::byte* from, std::size_t bytes) {
            cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamPerThread),
                        "copying back");
            cuda::check(cudaStreamSynchronize(cudaStreamPerThread), "copying back");
          },
          [](Stream stream) { cuda::check(cudaStreamSynchronize(native(stream)), "a stream"); }};
}

/// The same with messages in groups of threads' own.
TestDevice in_threads_groups() {
  TestDevice with_groups = test_device();
  with_groups.groups = [device = with_groups.device](int) {
    return [device](Transport& host) {
      return thread_fused_transport(host, device, support::test_options().timeout);
    };
  };
  return with_groups;
}

}  // namespace

TEST_CASE("CUDA groups of threads: every collective by every algorithm gives the host's bits") {
  for (const int size : sizes) {
    CAPTURE(size);
    every_collective(size, in_threads_groups());
  }
}

TEST_CASE("CUDA groups of threads: 64 ranks on one device, whose streams share hardware queues") {
  many_ranks(64, in_threads_groups());
}

TEST_CASE("CUDA groups of threads: tensors along any dimensions, and split communicators") {
  tensors(in_threads_groups());
}

TEST_CASE("CUDA streams: calls in the default stream") {
  for (const TestDevice& device : {test_device(), in_threads_groups()}) {
    on_one_device(2, device, [](Seat& seat) {
      for (const cudaStream_t stream : {cudaStream_t{}, cudaStreamLegacy, cudaStreamPerThread}) {
        auto* const data = seat.put(numbers(seat.rank, 8));
        seat.communicator.all_reduce({data, 8, Datatype::i32}, {data, 8, Datatype::i32}, sum,
                                     stream);
        cuda::check(cudaStreamSynchronize(stream), "the default stream");
        std::vector<std::int32_t> expected = numbers(0, 8);
        for (std::size_t i = 0; i < 8; ++i) expected[i] += numbers(1, 8)[i];
        CHECK(seat.got(data, 8) == expected);
        seat.free(data);
      }
    });
  }
}

TEST_CASE("CUDA streams: every collective by every algorithm gives the host's bits") {
  for (const int size : sizes)
    for (const std::size_t segment : {0, 50}) {
      CAPTURE(size);
      CAPTURE(segment);
      every_collective(size, test_device(), 0, segment);
    }
}

TEST_CASE("CUDA streams: tensors along any dimensions, and split communicators") {
  tensors(test_device());
}

TEST_CASE("CUDA streams: memory and streams that do not fit are refused") {
  on_one_device(2, test_device(), [](Seat& seat) {
    auto* const data = seat.put(numbers(seat.rank, 8));
    std::vector<std::int32_t> host(8);
    const Data good{data, 8, Datatype::i32};
    refused(seat, {host.data(), 8, Datatype::i32}, seat.stream,
            {"memory of CUDA device 0", "the host's"});
    void* locked = nullptr;
    cuda::check(cudaMallocHost(&locked, 32), "locked memory");
    refused(seat, {locked, 8, Datatype::i32}, seat.stream,
            {"memory of CUDA device 0", "the host's"});
    refused(seat, {reinterpret_cast<std::byte*>(data) + 1, 7, Datatype::i32}, seat.stream,
            {"aligned to its elements of 4 bytes", "1 bytes off"});
    int least = 0, greatest = 0;
    cuda::check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities");
    cudaStream_t urgent = nullptr, captured = nullptr;
    cuda::check(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, greatest), "a stream");
    refused(seat, good, urgent, {"less than the highest priority"});
    cuda::check(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking), "a stream");
    cuda::check(cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal), "a capture");
    refused(seat, good, captured, {"not being captured"});
    cudaGraph_t graph = nullptr;
    cuda::check(cudaStreamEndCapture(captured, &graph), "a capture");
    // None of them broke anything.
    seat.communicator.all_reduce(good, good, sum, seat.stream);
    seat.synchronize();
    std::vector<std::int32_t> expected = numbers(0, 8);
    for (std::size_t i = 0; i < 8; ++i) expected[i] += numbers(1, 8)[i];
    CHECK(seat.got(data, 8) == expected);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(urgent);
    cudaStreamDestroy(captured);
    cudaFreeHost(locked);
  });
}

int main(int count, char** arguments) {
  // Before the first call of CUDA: streams that are held need a hardware queue each.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  if (cuda_devices() == 0) {
    std::puts("skipped: expected a CUDA device, found none");
    return 77;
  }
  return doctest::Context(count, arguments).run();
}
