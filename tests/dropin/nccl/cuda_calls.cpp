#include "cuda_calls.hpp"

#include <chrono>
#include <thread>

#include "pattern.hpp"

namespace cuda_calls {
namespace {

using nccl_pattern::Pattern;

/// As benchmarks wait: without holding up the thread.
void wait_for(const Ranks& ranks) {
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

std::size_t bytes_of(const Case& one, std::int64_t elements) {
  return static_cast<std::size_t>(elements) * nccl_pattern::form_of(one.type).bytes;
}
char* at(const Case& one, char* buffer, std::int64_t elements = 0) {
  return buffer + bytes_of(one, one.shift + elements);
}

Pattern pattern_of(const Ranks& ranks, const Case& one) {
  return {one.type, one.op, ranks.front().size, 3, factor};
}

/// Element `i` of those that rank `from` has for rank `to`.
std::uint64_t element(int type, int from, int to, std::int64_t i) {
  return Pattern{type, ncclSum, 1, static_cast<std::uint64_t>(from * 100 + to)}.input(0, i);
}

}  // namespace

void together(Ranks& ranks, const std::function<void(Rank&)>& call) {
  if (ranks.size() > 1) ok(ncclGroupStart());
  for (Rank& rank : ranks) call(rank);
  if (ranks.size() > 1) ok(ncclGroupEnd());
}

namespace {

/// A collective whose result lies on the ranks that `has_result` names; `call` is NCCL's.
template <class HasResult, class Call>
void reduced(Ranks& ranks, const Case& one, const HasResult& has_result, const Call& call) {
  const Pattern all = pattern_of(ranks, one);
  const auto source = [&](const Rank& r) { return at(one, one.in_place ? r.recv : r.send); };
  for (const Rank& r : ranks)
    put(r, source(r), one.count, one.type, [&](auto i) { return all.input(r.rank, i); });
  together(ranks, [&](Rank& r) {
    const ncclRedOp_t op = op_for(r, one.op, one.type);
    ok(call(source(r), at(one, r.recv), static_cast<std::size_t>(one.count), one.type, op, r.comm,
            r.stream));
    done_with(r, op);
  });
  wait_for(ranks);
  for (const Rank& r : ranks)
    if (has_result(r))
      check(r, at(one, r.recv), one.count, one.type, [&](auto i) { return all.result(i); });
}

}  // namespace

void all_reduce(Ranks& ranks, const Case& one) {
  reduced(
      ranks, one, [](const Rank&) { return true; },
      [](const auto&... arguments) { return ncclAllReduce(arguments...); });
}

void reduce(Ranks& ranks, const Case& one, int root) {
  reduced(
      ranks, one, [root](const Rank& r) { return r.rank == root; },
      [root](const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
             ncclComm_t comm, cudaStream_t stream) {
        return ncclReduce(in, out, count, type, op, root, comm, stream);
      });
}

void reduce_scatter(Ranks& ranks, const Case& one) {
  const int size = ranks.front().size;
  const Pattern all = pattern_of(ranks, one);
  const auto source = [&](const Rank& r) { return at(one, one.in_place ? r.recv : r.send); };
  const auto target = [&](const Rank& r) {
    return at(one, r.recv, one.in_place ? r.rank * one.count : 0);
  };
  for (const Rank& r : ranks)
    put(r, source(r), one.count * size, one.type, [&](auto i) { return all.input(r.rank, i); });
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

void movements(Ranks& ranks, const Case& one, int root) {
  const int size = ranks.front().size;
  const auto n = static_cast<std::size_t>(one.count);
  const std::int64_t all = one.count * size;
  // Each collective has data of its own: a result of the one before it is wrong.
  enum { gathered_by_all, gathered, broadcast, scattered };
  const auto fill_own = [&](const Rank& r, char* to, int of, int data) {
    put(r, to, one.count, one.type, [&](auto i) { return element(one.type, of, data, i); });
  };
  const auto check_all = [&](const Rank& r, int data) {
    check(r, at(one, r.recv), all, one.type, [&](auto i) {
      return element(one.type, static_cast<int>(i / one.count), data, i % one.count);
    });
  };
  // All-gather, gather.
  const auto own = [&](const Rank& r) {
    return one.in_place ? at(one, r.recv, r.rank * one.count) : at(one, r.send);
  };
  for (const Rank& r : ranks) fill_own(r, own(r), r.rank, gathered_by_all);
  together(ranks, [&](Rank& r) {
    ok(ncclAllGather(own(r), at(one, r.recv), n, one.type, r.comm, r.stream));
  });
  wait_for(ranks);
  for (const Rank& r : ranks) check_all(r, gathered_by_all);
  for (const Rank& r : ranks) fill_own(r, own(r), r.rank, gathered);
  together(ranks, [&](Rank& r) {
    ok(ncclGather(own(r), at(one, r.recv), n, one.type, root, r.comm, r.stream));
  });
  wait_for(ranks);
  for (const Rank& r : ranks)
    if (r.rank == root) check_all(r, gathered);
  // Broadcast.
  const auto source = [&](const Rank& r) { return at(one, one.in_place ? r.recv : r.send); };
  for (const Rank& r : ranks)
    if (r.rank == root) fill_own(r, source(r), root, broadcast);
  together(ranks, [&](Rank& r) {
    ok(ncclBroadcast(source(r), at(one, r.recv), n, one.type, root, r.comm, r.stream));
  });
  wait_for(ranks);
  for (const Rank& r : ranks)
    check(r, at(one, r.recv), one.count, one.type,
          [&](auto i) { return element(one.type, root, broadcast, i); });
  // Scatter.
  const auto part = [&](const Rank& r) {
    return at(one, r.recv, one.in_place && r.rank == root ? r.rank * one.count : 0);
  };
  for (const Rank& r : ranks)
    if (r.rank == root)
      put(r, source(r), all, one.type,
          [&](auto i) { return element(one.type, root, scattered, i); });
  together(ranks, [&](Rank& r) {
    ok(ncclScatter(source(r), part(r), n, one.type, root, r.comm, r.stream));
  });
  wait_for(ranks);
  for (const Rank& r : ranks)
    check(r, part(r), one.count, one.type,
          [&](auto i) { return element(one.type, root, scattered, r.rank * one.count + i); });
  if (one.in_place) return;
  // All-to-all.
  for (const Rank& r : ranks)
    put(r, at(one, r.send), all, one.type, [&](auto i) {
      return element(one.type, r.rank, static_cast<int>(i / one.count), i % one.count);
    });
  together(ranks, [&](Rank& r) {
    ok(ncclAlltoAll(at(one, r.send), at(one, r.recv), n, one.type, r.comm, r.stream));
  });
  wait_for(ranks);
  for (const Rank& r : ranks)
    check(r, at(one, r.recv), all, one.type, [&](auto i) {
      return element(one.type, static_cast<int>(i / one.count), r.rank, i % one.count);
    });
}

void messages(Ranks& ranks, const Case& one) {
  const int size = ranks.front().size;
  const auto n = static_cast<std::size_t>(one.count);
  for (const Rank& r : ranks)
    put(r, at(one, r.send), one.count, one.type,
        [&](auto i) { return element(one.type, r.rank, 0, i); });
  together(ranks, [&](Rank& r) {
    ok(ncclGroupStart());
    ok(ncclSend(at(one, r.send), n, one.type, (r.rank + 1) % size, r.comm, r.stream));
    ok(ncclRecv(at(one, r.recv), n, one.type, (r.rank + size - 1) % size, r.comm, r.stream));
    ok(ncclGroupEnd());
  });
  wait_for(ranks);
  for (const Rank& r : ranks)
    check(r, at(one, r.recv), one.count, one.type,
          [&](auto i) { return element(one.type, (r.rank + size - 1) % size, 0, i); });

  const auto elements = [&](int from, int to) { return (from * 3 + to * 5) % 7 * one.count / 7; };
  for (const Rank& r : ranks) {
    std::int64_t first = 0;
    for (int to = 0; to < size; first += elements(r.rank, to++))
      put(r, at(one, r.send, first), elements(r.rank, to), one.type,
          [&](auto i) { return element(one.type, r.rank, to, i); });
  }
  together(ranks, [&](Rank& r) {
    std::int64_t sent = 0, received = 0;
    ok(ncclGroupStart());
    for (int peer = 0; peer < size; ++peer) {
      const std::int64_t out = elements(r.rank, peer), in = elements(peer, r.rank);
      ok(ncclSend(at(one, r.send, sent), static_cast<std::size_t>(out), one.type, peer, r.comm,
                  r.stream));
      ok(ncclRecv(at(one, r.recv, received), static_cast<std::size_t>(in), one.type, peer, r.comm,
                  r.stream));
      sent += out;
      received += in;
    }
    ok(ncclGroupEnd());
  });
  wait_for(ranks);
  for (const Rank& r : ranks) {
    std::int64_t first = 0;
    for (int from = 0; from < size; first += elements(from++, r.rank))
      check(r, at(one, r.recv, first), elements(from, r.rank), one.type,
            [&](auto i) { return element(one.type, from, r.rank, i); });
  }

  if ((size & (size - 1)) != 0 || ranks.size() > 1) return;
  Rank& r = ranks.front();
  put(r, at(one, r.send), one.count, one.type,
      [&](auto i) { return element(one.type, r.rank, 0, i); });
  ok(cudaMemcpyAsync(at(one, r.recv, r.rank * one.count), at(one, r.send), bytes_of(one, one.count),
                     cudaMemcpyDeviceToDevice, r.stream));
  for (int half = 1; half < size; half *= 2) {
    const int mine = r.rank / half * half;
    const auto all = static_cast<std::size_t>(half) * n;
    ok(ncclGroupStart());
    ok(ncclSend(at(one, r.recv, mine * one.count), all, one.type, r.rank ^ half, r.comm, r.stream));
    ok(ncclRecv(at(one, r.recv, (mine ^ half) * one.count), all, one.type, r.rank ^ half, r.comm,
                r.stream));
    ok(ncclGroupEnd());
  }
  wait_for(ranks);
  check(r, at(one, r.recv), one.count * size, one.type, [&](auto i) {
    return element(one.type, static_cast<int>(i / one.count), 0, i % one.count);
  });
}

void aggregated(Ranks& ranks) {
  const int size = ranks.front().size;
  constexpr std::size_t count = 500;
  std::vector<cudaEvent_t> events(2 * ranks.size());
  std::vector<void*> handles(ranks.size());
  std::vector<ncclWindow_t> windows(ranks.size());
  const Pattern all{ncclInt32, ncclSum, size, 9};
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

void read_behind(Ranks& ranks) {
  constexpr std::int64_t count = 700;
  const Pattern all{ncclInt32, ncclSum, ranks.front().size, 5};
  for (int turn = 0; turn < 3; ++turn) {
    for (const Rank& r : ranks)
      put(r, r.send, count, ncclInt32, [&](auto i) { return all.input(r.rank, i); });
    together(ranks, [&](Rank& r) {
      ok(ncclAllReduce(r.send, r.recv, count, ncclInt32, ncclSum, r.comm, r.stream));
    });
    for (const Rank& r : ranks) {
      Host host(count * sizeof(std::int32_t));
      ok(cudaSetDevice(r.device));
      ok(cudaMemcpyAsync(host.data(), r.recv, host.size(), cudaMemcpyDeviceToHost, r.stream));
      ok(cudaStreamSynchronize(r.stream));
      CHECK(nccl_pattern::wrong(host.data(), count, ncclInt32,
                                [&](auto i) { return all.result(i); }) == 0);
    }
  }
}

void in_the_threads_stream(Ranks& ranks) {
  constexpr std::int64_t count = 500, bytes = count * 4;
  const Pattern all{ncclInt32, ncclSum, ranks.front().size, 11};
  Ranks those = ranks;
  const Rank& last = those.back();
  those.back().stream = cudaStreamPerThread;
  for (const Rank& r : those) {
    const bool later = &r == &last;
    put(r, later ? r.recv + bytes : r.send, count, ncclInt32,
        [&](auto i) { return all.input(r.rank, i); });
    if (!later) continue;
    ok(cudaMemsetAsync(r.send, 0, bytes, r.stream));
    const auto nap = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
    ok(cudaLaunchHostFunc(r.stream, nap, nullptr));
    ok(cudaMemcpyAsync(r.send, r.recv + bytes, bytes, cudaMemcpyDeviceToDevice, r.stream));
  }
  together(those, [&](Rank& r) {
    ok(ncclAllReduce(r.send, r.recv, count, ncclInt32, ncclSum, r.comm, r.stream));
  });
  for (const Rank& r : those) {
    ok(cudaSetDevice(r.device));  // whose stream of the thread's it is
    ok(cudaStreamSynchronize(r.stream));
    check(r, r.recv, count, ncclInt32, [&](auto i) { return all.result(i); });
  }
  if (ranks.size() < 2) return;
  ok(ncclGroupStart());
  for (const Rank& r : those) {
    const bool first = &r == &those.front();
    CHECK(ncclAllReduce(r.send, r.recv, count, ncclInt32, ncclSum, r.comm, cudaStreamPerThread) ==
          (first ? ncclSuccess : ncclInvalidUsage));
  }
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
  CHECK(std::string(ncclGetLastError(nullptr)).find("cudaStreamPerThread") != std::string::npos);
}

void beside_a_capture(Ranks& ranks) {
  constexpr std::int64_t count = 600;
  const Pattern all{ncclInt32, ncclSum, ranks.front().size, 13};
  for (const Rank& r : ranks)
    put(r, r.send, count, ncclInt32, [&](auto i) { return all.input(r.rank, i); });
  cudaStream_t other = nullptr;
  ok(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  ok(cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal));
  together(ranks, [&](Rank& r) {
    ok(ncclAllReduce(r.send, r.recv, count, ncclInt32, ncclSum, r.comm, r.stream));
  });
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(other, &graph));
  ok(cudaGraphDestroy(graph));
  ok(cudaStreamDestroy(other));
  for (const Rank& r : ranks)
    check(r, r.recv, count, ncclInt32, [&](auto i) { return all.result(i); });
}

void refused_in_captures(Ranks& ranks) {
  std::vector<cudaStream_t> streams;  // the default stream cannot be captured
  for (const Rank& r : ranks) {
    ok(cudaSetDevice(r.device));
    ok(cudaStreamCreateWithFlags(&streams.emplace_back(), cudaStreamNonBlocking));
    ok(cudaStreamBeginCapture(streams.back(), cudaStreamCaptureModeThreadLocal));
  }
  ok(ncclGroupStart());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Rank& r = ranks[i];
    ok(ncclAllReduce(r.send, r.recv, 4, ncclFloat, ncclSum, r.comm, streams[i]));
  }
  CHECK(ncclGroupEnd() != ncclSuccess);
  CHECK(std::string(ncclGetLastError(nullptr)).find("captured") != std::string::npos);
  for (const cudaStream_t stream : streams) {
    cudaGraph_t graph = nullptr;
    ok(cudaStreamEndCapture(stream, &graph));
    ok(cudaGraphDestroy(graph));
    ok(cudaStreamDestroy(stream));
  }
}

}  // namespace cuda_calls
