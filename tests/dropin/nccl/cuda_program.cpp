/// A program of CUDA's and NCCL's, which knows nothing of this library: the calls that benchmarks
/// make, with their data checked. Linked with stand-ins for both.
///
/// Usage: cuda_program PROCESSES THREADS DEVICES: THREADS of each process have DEVICES each.

#define DOCTEST_CONFIG_IMPLEMENT
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>
#include <nccl.h>

#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "cuda_calls.hpp"
#include "processes.hpp"

namespace {

using namespace cuda_calls;

int processes = 1, threads = 1, devices = 1, process = 0;
std::function<ncclUniqueId()> identifier;
int size() { return processes * threads * devices; }

void everything(Ranks& ranks) {
  for (int type = 0; type < ncclNumTypes; ++type) {
    const auto its = static_cast<ncclDataType_t>(type);
    for (int op = 0; op <= ncclNumOps; ++op)
      for (const bool in_place : {false, true}) {
        CAPTURE(type);
        CAPTURE(op);
        CAPTURE(in_place);
        all_reduce(ranks, {its, op, 130, in_place});
        reduce(ranks, {its, op, 77, in_place}, size() - 1);
        reduce_scatter(ranks, {its, op, 64, in_place});
      }
    movements(ranks, {its, 0, 40, false}, 0);
    movements(ranks, {its, 0, 40, true}, size() - 1);
    messages(ranks, {its, 0, 60, false});
  }
  for (const int shift : {0, 1, 3}) {
    all_reduce(ranks, {ncclFloat16, ncclSum, 5000, shift != 0, shift});
    movements(ranks, {ncclInt8, 0, 1000, false, shift}, size() / 2);
    messages(ranks, {ncclInt8, 0, 5000, false, shift});
  }
  aggregated(ranks);
  read_behind(ranks);
  in_the_threads_stream(ranks);
  refused_in_captures(ranks);
  all_reduce(ranks, {ncclFloat32, ncclSum, 4, false});
}

Rank rank_of(int thread, int device) {
  Rank r;
  r.size = size();
  r.device = thread * devices + device;
  r.rank = process * threads * devices + r.device;
  ok(cudaSetDevice(r.device));
  // Others use the default stream, as programs do that know of no other.
  if (r.rank % 2 == 0) ok(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
  return r;
}

void take_memory(Rank& r) {
  ok(cudaSetDevice(r.device));
  ok(ncclMemAlloc(reinterpret_cast<void**>(&r.send), bytes_each));
  ok(ncclMemAlloc(reinterpret_cast<void**>(&r.recv), bytes_each));
  ok(cudaMemset(r.recv, 0, bytes_each));
}

void end(Rank& r) {
  ok(ncclCommDestroy(r.comm));
  ok(ncclMemFree(r.send));
  ok(ncclMemFree(r.recv));
  if (r.stream) ok(cudaStreamDestroy(r.stream));
}

void in_threads(const std::function<void(int)>& body) {
  std::vector<std::thread> all;
  for (int thread = 1; thread < threads; ++thread) all.emplace_back(body, thread);
  body(0);
  for (std::thread& thread : all) thread.join();
}

}  // namespace

TEST_CASE("communicators that one thread makes for all, in a group") {
  const ncclUniqueId id = identifier();
  std::vector<Ranks> ranks(static_cast<std::size_t>(threads));
  ok(ncclGroupStart());
  for (int thread = 0; thread < threads; ++thread) {
    auto& own = ranks[static_cast<std::size_t>(thread)];
    for (int device = 0; device < devices; ++device) own.push_back(rank_of(thread, device));
    for (Rank& r : own) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      ok(cudaSetDevice(r.device));
      ok(ncclCommInitRankConfig(&r.comm, size(), id, r.rank, &config));
    }
  }
  ok(ncclGroupEnd());
  ok(ncclGroupStart());  // memory is taken at once, in a group, too
  for (auto& own : ranks)
    for (Rank& r : own) take_memory(r);
  ok(ncclGroupEnd());
  in_threads([&](int thread) { everything(ranks[static_cast<std::size_t>(thread)]); });
  for (auto& own : ranks)
    for (Rank& r : own) end(r);
}

TEST_CASE("communicators that each thread makes for its devices") {
  const ncclUniqueId id = identifier();
  in_threads([&](int thread) {
    Ranks own;
    for (int device = 0; device < devices; ++device) own.push_back(rank_of(thread, device));
    together(own, [&](Rank& r) {
      ok(cudaSetDevice(r.device));
      ok(ncclCommInitRank(&r.comm, size(), id, r.rank));
    });
    for (Rank& r : own) {
      int count = 0, rank = -1, device = -1;
      ok(ncclCommCount(r.comm, &count));
      ok(ncclCommUserRank(r.comm, &rank));
      ok(ncclCommCuDevice(r.comm, &device));
      CHECK(count == size());
      CHECK(rank == r.rank);
      CHECK(device == r.device);
      take_memory(r);
    }
    all_reduce(own, {ncclBfloat16, ncclNumOps, 3000, false});
    messages(own, {ncclUint8, 0, 60, false});
    for (Rank& r : own) end(r);
  });
}

TEST_CASE("communicators of one process, made by ncclCommInitAll") {
  if (processes > 1 || threads > 1) return;
  Ranks own;
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(devices));
  ok(ncclCommInitAll(comms.data(), devices, nullptr));
  for (int device = 0; device < devices; ++device) {
    own.push_back(rank_of(0, device));
    own.back().comm = comms[static_cast<std::size_t>(device)];
    take_memory(own.back());
  }
  all_reduce(own, {ncclFloat8e4m3, ncclMax, 3000, true});
  beside_a_capture(own);
  for (Rank& r : own) end(r);
  ok(cudaDeviceReset());
}

int main(int count, char** arguments) {
  if (count < 4) return 2;
  processes = std::atoi(arguments[1]);
  threads = std::atoi(arguments[2]);
  devices = std::atoi(arguments[3]);
  Processes all(processes);
  process = all.own();
  identifier = [&] { return all.identifier(0); };
  return all.run(count - 3, arguments + 3);
}
