/// Collectives in CUDA streams over NCCL, under mpirun. Ranks that outnumber the devices share
/// them: each then poses as a host of its own. Exit code 77 where there is no device.

#define DOCTEST_CONFIG_IMPLEMENT
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "baton/cuda.hpp"
#include "baton/cuda_runtime.hpp"
#include "baton/error.hpp"
#include "baton/mpi.hpp"
#include "baton/nccl.hpp"
#include "stream_cases.hpp"

using namespace baton;
using namespace stream_cases;
using namespace std::chrono_literals;
using support::error_of;
using support::holds;

namespace {

cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream); }

int ranks() { return mpi_transport(MPI_COMM_WORLD)->size(); }
int own_rank() { return mpi_transport(MPI_COMM_WORLD)->rank(); }

/// With no limit NCCL's calls block, with one they do not.
TestDevice over_nccl(std::chrono::milliseconds limit) {
  const std::shared_ptr<Device> device = cuda_device(own_rank() % cuda_devices());
  const auto copy = [](void* to, const void* from, std::size_t bytes) {
    cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamPerThread),
                "copying");
    cuda::check(cudaStreamSynchronize(cudaStreamPerThread), "copying");
  };
  return {device,
          [device] {
            cuda::check(cudaSetDevice(cuda_ordinal(*device)), "a device");
            cudaStream_t stream = nullptr;
            cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
            return static_cast<Stream>(stream);
          },
          copy,
          copy,
          [](Stream stream) { cuda::check(cudaStreamSynchronize(native(stream)), "a stream"); },
          [device, limit](int) {
            return
                [device, limit](Transport& host) { return nccl_transport(host, *device, limit); };
          },
          [](const auto& body) { body(mpi_transport(MPI_COMM_WORLD)); }};
}

/// What NCCL goes by where ranks share a device.
void pose_as(const std::string& host) {
  if (ranks() > cuda_devices()) setenv("NCCL_HOSTID", host.c_str(), 1);
}

}  // namespace

TEST_CASE("NCCL: two ranks on one device are refused by one sentence on all") {
  if (ranks() <= cuda_devices()) return;
  pose_as("one");
  const auto host = mpi_transport(MPI_COMM_WORLD);
  const auto device = cuda_device(own_rank() % cuda_devices());
  const Error error = error_of([&] { nccl_transport(*host, *device); });
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(holds(error.what(), {"a GPU for each rank", "ranks 0 and", "NCCL_HOSTID"}));
  pose_as(std::to_string(own_rank()));
}

TEST_CASE("NCCL: every collective by every algorithm gives the host's bits") {
  every_collective(ranks(), over_nccl(0s));
}

TEST_CASE("NCCL: tensors along any dimensions, and split communicators") {
  if (ranks() == 4) tensors(over_nccl(60s));
}

TEST_CASE("NCCL: many calls in a row, each behind what its stream was given before") {
  for (const auto limit : {0s, 60s}) many_ranks(ranks(), over_nccl(limit));
}

TEST_CASE("NCCL: who waits for a peer that does not come says so, and lets its stream go on") {
  Options options = support::test_options();
  options.timeout = 2s;
  if (ranks() != 2) return;
  on_one_device(
      2, over_nccl(0s),
      [](Seat& seat) {
        auto* const data = seat.put(numbers(seat.rank, 99));
        const Data all{data, 99, Datatype::i32};
        const auto call = [&] { seat.communicator.all_reduce(all, all, sum, seat.stream); };
        call();
        seat.meet();
        if (seat.rank == 0) {
          call();
          const Error error = error_of([&] { seat.communicator.synchronize(); });
          CHECK(error.code == ErrorCode::timeout);
          CHECK_MESSAGE(holds(error.what(), {"all_reduce #", "rank 0 waits for group", "rank 1"}),
                        error.what());
          seat.synchronize();
          CHECK(holds(error_of(call).what(), {"usable communicator"}));
        }
        MPI_Barrier(MPI_COMM_WORLD);
      },
      options);
}

TEST_CASE("NCCL: who is not there to connect to ends the call that would") {
  if (ranks() != 2) return;
  on_one_device(2, over_nccl(2s), [](Seat& seat) {
    auto* const data = seat.put(numbers(seat.rank, 99));
    const Data all{data, 99, Datatype::i32};
    if (seat.rank == 0) {
      const Error error =
          error_of([&] { seat.communicator.all_reduce(all, all, sum, seat.stream); });
      CHECK(error.code == ErrorCode::timeout);
      CHECK_MESSAGE(
          holds(error.what(), {"all_reduce #", "peers of a fused group, 1, to enqueue theirs"}),
          error.what());
    }
    MPI_Barrier(MPI_COMM_WORLD);
  });
}

int main(int count, char** arguments) {
  int provided = 0;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &provided);
  const bool device = cuda_devices() > 0;
  int code = 77;
  if (device) {
    pose_as(std::to_string(own_rank()));
    code = doctest::Context(count, arguments).run();
  } else if (own_rank() == 0) {
    std::puts("skipped: expected a CUDA device, found none");
  }
  MPI_Finalize();
  return code;
}
