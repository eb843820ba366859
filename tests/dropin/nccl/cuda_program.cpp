/// A program of CUDA's and NCCL's, which knows nothing of this library: the calls that benchmarks
/// make, with their data checked. Linked with stand-ins for both.
///
/// Usage: cuda_program PROCESSES THREADS DEVICES: THREADS of each process have DEVICES each.

#define DOCTEST_CONFIG_IMPLEMENT
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>
#include <nccl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "pattern.hpp"

namespace {

using nccl_pattern::Pattern;

int processes = 1, threads = 1, devices = 1, process = 0;
int size() { return processes * threads * devices; }

void ok(cudaError_t code) {
  CHECK_MESSAGE(code == cudaSuccess, std::string(cudaGetErrorString(code)));
}
void ok(ncclResult_t code) {
  CHECK_MESSAGE(code == ncclSuccess, std::string(ncclGetLastError(nullptr)));
}

constexpr std::size_t bytes_each = std::size_t{1} << 16;

/// One rank, and what it has on its device.
struct Rank {
  int rank = 0, device = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  char *send = nullptr, *recv = nullptr;
};

/// Calls for some ranks of a thread, as one group if there are several.
void together(std::vector<Rank>& ranks, const std::function<void(Rank&)>& call) {
  if (ranks.size() > 1) ok(ncclGroupStart());
  for (Rank& rank : ranks) call(rank);
  if (ranks.size() > 1) ok(ncclGroupEnd());
}

/// As benchmarks wait: without holding up the thread.
void wait_for(const std::vector<Rank>& ranks) {
  for (const Rank& rank : ranks) {
    cudaError_t code = cudaStreamQuery(rank.stream);
    while (code == cudaErrorNotReady) {
      ncclResult_t failed = ncclInProgress;
      ok(ncclCommGetAsyncError(rank.comm, &failed));
      if (failed != ncclSuccess) return ok(failed);
      std::this_thread::yield();
      code = cudaStreamQuery(rank.stream);
    }
    ok(code);
  }
}

using Host = std::vector<char>;

void put(const Rank& rank, void* to, std::int64_t count, int type,
         const std::function<std::uint64_t(std::int64_t)>& bits_of) {
  Host host(static_cast<std::size_t>(count) * nccl_pattern::form_of(type).bytes);
  nccl_pattern::fill(host.data(), count, type, bits_of);
  ok(cudaSetDevice(rank.device));
  ok(cudaMemcpy(to, host.data(), host.size(), cudaMemcpyHostToDevice));
}

void check(const Rank& rank, const void* from, std::int64_t count, int type,
           const std::function<std::uint64_t(std::int64_t)>& bits_of) {
  Host host(static_cast<std::size_t>(count) * nccl_pattern::form_of(type).bytes);
  ok(cudaSetDevice(rank.device));
  ok(cudaMemcpy(host.data(), from, host.size(), cudaMemcpyDefault));
  CAPTURE(rank.rank);
  CHECK(nccl_pattern::wrong(host.data(), count, type, bits_of) == 0);
}

int factor(int rank) { return rank % 2 + 1; }

/// The op of a rank's call: PreMulSum's is made for it.
ncclRedOp_t op_for(const Rank& rank, int op, ncclDataType_t type) {
  if (op < ncclNumOps) return static_cast<ncclRedOp_t>(op);
  const nccl_pattern::Form form = nccl_pattern::form_of(type);
  std::uint64_t scalar = form.is_float ? nccl_pattern::bits_of(factor(rank.rank), form)
                                       : static_cast<std::uint64_t>(factor(rank.rank));
  ncclRedOp_t made = ncclSum;
  ok(ncclRedOpCreatePreMulSum(&made, &scalar, type, ncclScalarHostImmediate, rank.comm));
  return made;
}
void done_with(const Rank& rank, ncclRedOp_t op) {
  if (op >= ncclNumOps) ok(ncclRedOpDestroy(op, rank.comm));
}

struct Case {
  ncclDataType_t type;
  int op;
  std::int64_t count;  ///< of the smaller side
  bool in_place;
  int shift = 0;  ///< elements that buffers begin later

  std::size_t bytes(std::int64_t elements) const {
    return static_cast<std::size_t>(elements) * nccl_pattern::form_of(type).bytes;
  }
  char* at(char* buffer, std::int64_t elements = 0) const {
    return buffer + bytes(shift + elements);
  }
};

Pattern pattern_of(const Case& one) { return {one.type, one.op, size(), 3, factor}; }

void all_reduce(std::vector<Rank>& ranks, const Case& one) {
  const Pattern all = pattern_of(one);
  const auto source = [&](const Rank& r) { return one.at(one.in_place ? r.recv : r.send); };
  for (const Rank& r : ranks)
    put(r, source(r), one.count, one.type, [&](auto i) { return all.input(r.rank, i); });
  together(ranks, [&](Rank& r) {
    const ncclRedOp_t op = op_for(r, one.op, one.type);
    ok(ncclAllReduce(source(r), one.at(r.recv), static_cast<std::size_t>(one.count), one.type, op,
                     r.comm, r.stream));
    done_with(r, op);
  });
  wait_for(ranks);
  for (const Rank& r : ranks)
    check(r, one.at(r.recv), one.count, one.type, [&](auto i) { return all.result(i); });
}

void reduce(std::vector<Rank>& ranks, const Case& one, int root) {
  const Pattern all = pattern_of(one);
  const auto source = [&](const Rank& r) { return one.at(one.in_place ? r.recv : r.send); };
  for (const Rank& r : ranks)
    put(r, source(r), one.count, one.type, [&](auto i) { return all.input(r.rank, i); });
  together(ranks, [&](Rank& r) {
    const ncclRedOp_t op = op_for(r, one.op, one.type);
    ok(ncclReduce(source(r), one.at(r.recv), static_cast<std::size_t>(one.count), one.type, op,
                  root, r.comm, r.stream));
    done_with(r, op);
  });
  wait_for(ranks);
  for (const Rank& r : ranks)
    if (r.rank == root)
      check(r, one.at(r.recv), one.count, one.type, [&](auto i) { return all.result(i); });
}

void reduce_scatter(std::vector<Rank>& ranks, const Case& one) {
  const Pattern all = pattern_of(one);
  const auto source = [&](const Rank& r) { return one.at(one.in_place ? r.recv : r.send); };
  const auto target = [&](const Rank& r) {
    return one.at(r.recv, one.in_place ? r.rank * one.count : 0);
  };
  for (const Rank& r : ranks)
    put(r, source(r), one.count * size(), one.type, [&](auto i) { return all.input(r.rank, i); });
  together(ranks, [&](Rank& r) {
    const ncclRedOp_t op = op_for(r, one.op, one.type);
    ok(ncclReduceScatter(source(r), target(r), static_cast<std::size_t>(one.count), one.type, op,
                         r.comm, r.stream));
    done_with(r, op);
  });
  wait_for(ranks);
  for (const Rank& r : ranks)
    check(r, target(r), one.count, one.type,
          [&](auto i) { return all.result(r.rank * one.count + i); });
}

/// Element `i` of those that rank `from` has for rank `to`.
std::uint64_t element(int type, int from, int to, std::int64_t i) {
  return Pattern{type, ncclSum, 1, static_cast<std::uint64_t>(from * 100 + to)}.input(0, i);
}

void movements(std::vector<Rank>& ranks, const Case& one, int root) {
  const auto n = static_cast<std::size_t>(one.count);
  const std::int64_t all = one.count * size();
  const auto fill_own = [&](const Rank& r, char* to, int of) {
    put(r, to, one.count, one.type, [&](auto i) { return element(one.type, of, 0, i); });
  };
  const auto check_all = [&](const Rank& r) {
    check(r, one.at(r.recv), all, one.type, [&](auto i) {
      return element(one.type, static_cast<int>(i / one.count), 0, i % one.count);
    });
  };
  // All-gather, gather.
  const auto own = [&](const Rank& r) {
    return one.in_place ? one.at(r.recv, r.rank * one.count) : one.at(r.send);
  };
  for (const Rank& r : ranks) fill_own(r, own(r), r.rank);
  together(ranks, [&](Rank& r) {
    ok(ncclAllGather(own(r), one.at(r.recv), n, one.type, r.comm, r.stream));
  });
  wait_for(ranks);
  for (const Rank& r : ranks) check_all(r);
  for (const Rank& r : ranks) fill_own(r, own(r), r.rank);
  together(ranks, [&](Rank& r) {
    ok(ncclGather(own(r), one.at(r.recv), n, one.type, root, r.comm, r.stream));
  });
  wait_for(ranks);
  for (const Rank& r : ranks)
    if (r.rank == root) check_all(r);
  // Broadcast.
  const auto source = [&](const Rank& r) { return one.at(one.in_place ? r.recv : r.send); };
  for (const Rank& r : ranks)
    if (r.rank == root) fill_own(r, source(r), root);
  together(ranks, [&](Rank& r) {
    ok(ncclBroadcast(source(r), one.at(r.recv), n, one.type, root, r.comm, r.stream));
  });
  wait_for(ranks);
  for (const Rank& r : ranks)
    check(r, one.at(r.recv), one.count, one.type,
          [&](auto i) { return element(one.type, root, 0, i); });
  // Scatter.
  const auto part = [&](const Rank& r) {
    return one.at(r.recv, one.in_place && r.rank == root ? r.rank * one.count : 0);
  };
  for (const Rank& r : ranks)
    if (r.rank == root)
      put(r, source(r), all, one.type, [&](auto i) { return element(one.type, root, 0, i); });
  together(ranks, [&](Rank& r) {
    ok(ncclScatter(source(r), part(r), n, one.type, root, r.comm, r.stream));
  });
  wait_for(ranks);
  for (const Rank& r : ranks)
    check(r, part(r), one.count, one.type,
          [&](auto i) { return element(one.type, root, 0, r.rank * one.count + i); });
  if (one.in_place) return;
  // All-to-all.
  for (const Rank& r : ranks)
    put(r, one.at(r.send), all, one.type, [&](auto i) {
      return element(one.type, r.rank, static_cast<int>(i / one.count), i % one.count);
    });
  together(ranks, [&](Rank& r) {
    ok(ncclAlltoAll(one.at(r.send), one.at(r.recv), n, one.type, r.comm, r.stream));
  });
  wait_for(ranks);
  for (const Rank& r : ranks)
    check(r, one.at(r.recv), all, one.type, [&](auto i) {
      return element(one.type, static_cast<int>(i / one.count), r.rank, i % one.count);
    });
}

/// Messages: round a ring; from each to each, of different sizes; in halves of a hypercube.
void messages(std::vector<Rank>& ranks, const Case& one) {
  const auto n = static_cast<std::size_t>(one.count);
  for (const Rank& r : ranks)
    put(r, one.at(r.send), one.count, one.type,
        [&](auto i) { return element(one.type, r.rank, 0, i); });
  together(ranks, [&](Rank& r) {
    ok(ncclGroupStart());
    ok(ncclSend(one.at(r.send), n, one.type, (r.rank + 1) % size(), r.comm, r.stream));
    ok(ncclRecv(one.at(r.recv), n, one.type, (r.rank + size() - 1) % size(), r.comm, r.stream));
    ok(ncclGroupEnd());
  });
  wait_for(ranks);
  for (const Rank& r : ranks)
    check(r, one.at(r.recv), one.count, one.type,
          [&](auto i) { return element(one.type, (r.rank + size() - 1) % size(), 0, i); });

  const auto elements = [&](int from, int to) { return (from * 3 + to * 5) % 7 * one.count / 7; };
  for (const Rank& r : ranks) {
    std::int64_t at = 0;
    for (int to = 0; to < size(); at += elements(r.rank, to++))
      put(r, one.at(r.send, at), elements(r.rank, to), one.type,
          [&](auto i) { return element(one.type, r.rank, to, i); });
  }
  together(ranks, [&](Rank& r) {
    std::int64_t sent = 0, received = 0;
    ok(ncclGroupStart());
    for (int peer = 0; peer < size(); ++peer) {
      const std::int64_t out = elements(r.rank, peer), in = elements(peer, r.rank);
      ok(ncclSend(one.at(r.send, sent), static_cast<std::size_t>(out), one.type, peer, r.comm,
                  r.stream));
      ok(ncclRecv(one.at(r.recv, received), static_cast<std::size_t>(in), one.type, peer, r.comm,
                  r.stream));
      sent += out;
      received += in;
    }
    ok(ncclGroupEnd());
  });
  wait_for(ranks);
  for (const Rank& r : ranks) {
    std::int64_t at = 0;
    for (int from = 0; from < size(); at += elements(from++, r.rank))
      check(r, one.at(r.recv, at), elements(from, r.rank), one.type,
            [&](auto i) { return element(one.type, from, r.rank, i); });
  }

  if ((size() & (size() - 1)) != 0 || ranks.size() > 1) return;
  Rank& r = ranks.front();
  put(r, one.at(r.send), one.count, one.type,
      [&](auto i) { return element(one.type, r.rank, 0, i); });
  ok(cudaMemcpyAsync(one.at(r.recv, r.rank * one.count), one.at(r.send), one.bytes(one.count),
                     cudaMemcpyDeviceToDevice, r.stream));
  for (int half = 1; half < size(); half *= 2) {
    const int first = r.rank / half * half;
    const auto all = static_cast<std::size_t>(half) * n;
    ok(ncclGroupStart());
    ok(ncclSend(one.at(r.recv, first * one.count), all, one.type, r.rank ^ half, r.comm, r.stream));
    ok(ncclRecv(one.at(r.recv, (first ^ half) * one.count), all, one.type, r.rank ^ half, r.comm,
                r.stream));
    ok(ncclGroupEnd());
  }
  wait_for(ranks);
  check(r, one.at(r.recv), one.count * size(), one.type, [&](auto i) {
    return element(one.type, static_cast<int>(i / one.count), 0, i % one.count);
  });
}

/// Several calls in one group, timed by events; buffers that are registered.
void aggregated(std::vector<Rank>& ranks) {
  constexpr std::size_t count = 500;
  std::vector<cudaEvent_t> events(2 * ranks.size());
  std::vector<void*> handles(ranks.size());
  std::vector<ncclWindow_t> windows(ranks.size());
  const Pattern all{ncclInt32, ncclSum, size(), 9};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Rank& r = ranks[i];
    ok(cudaSetDevice(r.device));
    ok(cudaEventCreate(&events[2 * i]));
    ok(cudaEventCreate(&events[2 * i + 1]));
    ok(ncclCommRegister(r.comm, r.send, bytes_each, &handles[i]));
    ok(ncclCommWindowRegister(r.comm, r.recv, bytes_each, &windows[i], NCCL_WIN_COLL_SYMMETRIC));
    put(r, r.send, count, ncclInt32, [&](auto at) { return all.input(r.rank, at); });
    ok(cudaEventRecord(events[2 * i], r.stream));
  }
  ok(ncclGroupStart());
  for (int turn = 0; turn < 4; ++turn)
    for (Rank& r : ranks)
      ok(ncclAllReduce(r.send, r.recv + turn * 4 * static_cast<int>(count), count, ncclInt32,
                       ncclSum, r.comm, r.stream));
  ok(ncclGroupEnd());
  for (std::size_t i = 0; i < ranks.size(); ++i)
    ok(cudaEventRecord(events[2 * i + 1], ranks[i].stream));
  wait_for(ranks);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    float milliseconds = -1;
    ok(cudaEventElapsedTime(&milliseconds, events[2 * i], events[2 * i + 1]));
    CHECK(milliseconds >= 0);
    for (int turn = 0; turn < 4; ++turn)
      check(ranks[i], ranks[i].recv + turn * 4 * static_cast<int>(count), count, ncclInt32,
            [&](auto at) { return all.result(at); });
    ok(ncclCommDeregister(ranks[i].comm, handles[i]));
    ok(ncclCommWindowDeregister(ranks[i].comm, windows[i]));
    ok(cudaEventDestroy(events[2 * i]));
    ok(cudaEventDestroy(events[2 * i + 1]));
  }
}

/// A graph cannot hold a collective: that is refused, and breaks nothing.
void refused_in_captures(std::vector<Rank>& ranks) {
  for (const Rank& r : ranks)
    ok(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
  ok(ncclGroupStart());
  for (const Rank& r : ranks)
    ok(ncclAllReduce(r.send, r.recv, 4, ncclFloat, ncclSum, r.comm, r.stream));
  CHECK(ncclGroupEnd() != ncclSuccess);
  CHECK(std::string(ncclGetLastError(nullptr)).find("captured") != std::string::npos);
  for (const Rank& r : ranks) {
    cudaGraph_t graph = nullptr;
    ok(cudaStreamEndCapture(r.stream, &graph));
    ok(cudaGraphDestroy(graph));
  }
}

void everything(std::vector<Rank>& ranks) {
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
  refused_in_captures(ranks);
  all_reduce(ranks, {ncclFloat32, ncclSum, 4, false});
}

Rank rank_of(int thread, int device) {
  Rank r;
  r.device = thread * devices + device;
  r.rank = process * threads * devices + r.device;
  ok(cudaSetDevice(r.device));
  ok(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
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
  ok(cudaStreamDestroy(r.stream));
}

/// In memory that all processes share.
struct Shared {
  ncclUniqueId identifiers[2];
  std::atomic<int> made = 0;
};
Shared* shared = nullptr;

ncclUniqueId identifier(int which) {
  if (process == 0) {
    ok(ncclGetUniqueId(&shared->identifiers[which]));
    shared->made = which + 1;
  }
  while (shared->made <= which) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return shared->identifiers[which];
}

void in_threads(const std::function<void(int)>& body) {
  std::vector<std::thread> all;
  for (int thread = 1; thread < threads; ++thread) all.emplace_back(body, thread);
  body(0);
  for (std::thread& thread : all) thread.join();
}

}  // namespace

TEST_CASE("communicators that one thread makes for all, in a group") {
  const ncclUniqueId id = identifier(0);
  std::vector<std::vector<Rank>> ranks(static_cast<std::size_t>(threads));
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
  const ncclUniqueId id = identifier(1);
  in_threads([&](int thread) {
    std::vector<Rank> own;
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
  std::vector<Rank> own;
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(devices));
  ok(ncclCommInitAll(comms.data(), devices, nullptr));
  for (int device = 0; device < devices; ++device) {
    own.push_back(rank_of(0, device));
    own.back().comm = comms[static_cast<std::size_t>(device)];
    take_memory(own.back());
  }
  all_reduce(own, {ncclFloat8e4m3, ncclMax, 3000, true});
  for (Rank& r : own) end(r);
  ok(cudaDeviceReset());
}

int main(int count, char** arguments) {
  if (count < 4) return 2;
  processes = std::atoi(arguments[1]);
  threads = std::atoi(arguments[2]);
  devices = std::atoi(arguments[3]);
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  shared = new (memory) Shared;
  std::vector<pid_t> others;
  for (int i = 1; i < processes && process == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) process = i;
    others.push_back(child);
  }
  alarm(280);  // a hang becomes a failure
  int failed = doctest::Context(count - 3, arguments + 3).run();
  if (process > 0) std::exit(failed);
  for (const pid_t child : others) {
    int status = 0;
    failed |= waitpid(child, &status, 0) != child || status != 0 ? 1 : 0;
  }
  return failed;
}
