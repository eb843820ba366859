/// Calls that aborts, revocations and a lack of threads end.

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "world.hpp"

namespace nccl_stand_in {

using namespace baton;
using namespace std::chrono_literals;

namespace {

Bytes ints(std::size_t count, int rank) { return numbers(Datatype::i32, count, rank); }

/// While it lives, this process can start so many threads and no more: their stacks are large, and
/// its addresses are few.
class FewThreads {
 public:
  explicit FewThreads(int threads) {
    REQUIRE(pthread_getattr_default_np(&attributes_) == 0);
    pthread_attr_t large = attributes_;
    REQUIRE(pthread_attr_setstacksize(&large, stack) == 0);
    REQUIRE(pthread_setattr_default_np(&large) == 0);
    REQUIRE(getrlimit(RLIMIT_AS, &limit_) == 0);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit few = limit_;
    few.rlim_cur = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) +
                   static_cast<std::size_t>(threads) * stack + stack / 2;
    REQUIRE(setrlimit(RLIMIT_AS, &few) == 0);
  }
  ~FewThreads() {
    setrlimit(RLIMIT_AS, &limit_);
    pthread_setattr_default_np(&attributes_);
  }
  FewThreads(const FewThreads&) = delete;
  FewThreads& operator=(const FewThreads&) = delete;

 private:
  static constexpr std::size_t stack = std::size_t{1} << 28;
  pthread_attr_t attributes_{};
  rlimit limit_{};
};

thread_local int allocations_left = -1;  // negative: any number

/// What a call does when its thread's allocations fail from the n-th on, for each n until it has
/// enough. None may throw, since the caller may be C.
void starved(ncclResult_t enough, const std::function<ncclResult_t()>& call) {
  for (int n = 0;; ++n) {
    REQUIRE(n < 100);
    ncclResult_t result = ncclNumResults;
    bool thrown = false;
    allocations_left = n;
    try {
      result = call();
    } catch (...) {
      thrown = true;
    }
    const bool ran_out = std::exchange(allocations_left, -1) == 0;
    CAPTURE(n);
    CHECK(!thrown);
    if (!ran_out) {
      CHECK(result == enough);
      return;
    }
    CHECK((result == enough || result == ncclSystemError));
  }
}

/// Returns whether it comes true, in time.
bool until(const std::function<bool()>& comes) {
  for (int i = 0; i < 20000 && !comes(); ++i) std::this_thread::sleep_for(1ms);
  return comes();
}

/// Sums numbers of all ranks, as a whole communicator can.
void sums(World& world) {
  std::vector<std::byte*> data;
  for (const Rank& one : world.own()) data.push_back(one.put(ints(3000, 1)));
  std::size_t i = 0;
  world.together([&](const Rank& one) {
    std::byte* const its = data[i++];
    return ncclAllReduce(its, its, 3000, ncclInt32, ncclMax, one.comm, one.stream);
  });
  world.synchronize();
  for (i = 0; i < data.size(); ++i) {
    CHECK(world.own()[i].got(data[i], 12000) == ints(3000, 1));
    world.own()[i].free(data[i]);
  }
}

}  // namespace

void overtaken(const Layout& layout) {
  if (layout.size() == 1) return;  // no message waits
  const auto abort = [](const Rank& one) { ok(ncclCommAbort(one.comm)); };
  const auto receive = [](const World& world, const Rank& one, std::byte* to) {
    return ncclRecv(to, 1, ncclInt8, (one.rank + 1) % world.size(), one.comm, one.stream);
  };
  // Of the call's thread. With the handle gone, the program's call is wrong.
  const auto overtaken_by_abort = [&](ncclResult_t found) {
    if (found == ncclInvalidArgument)
      failed(found, ncclInvalidArgument, {"one that has ended"});
    else  // an abort(), or ncclCommAbort; ranks of other processes may have left before
      failed(found, ncclRemoteError, {layout.processes == 1 ? "bort" : ""});
  };
  {
    World world(layout), other(layout);
    layout.meet();
    for (const Rank& one : world.own()) {
      std::byte* const memory = one.put(Bytes(1));
      ok(ncclGroupStart());
      ok(receive(world, one, memory));
      std::thread(abort, one).join();
      failed(ncclGroupEnd(), ncclRemoteError, {"usable communicator", "ncclCommAbort was called"});
    }
    world.own().clear();
    for (const Rank& one : other.own()) {
      std::byte* const memory = one.put(Bytes(1));
      ok(ncclGroupStart());
      ok(receive(other, one, memory));
      ok(ncclCommRevoke(one.comm, NCCL_REVOKE_DEFAULT));
      failed(ncclGroupEnd(), ncclRemoteError, {"usable communicator", "ncclCommRevoke was called"});
      failed(receive(other, one, memory), ncclInvalidArgument, {"after its ncclCommRevoke"});
      ncclResult_t state = ncclSuccess;
      ok(ncclCommGetAsyncError(one.comm, &state));
    }
  }
  for (int round = 0; round < 5; ++round) {
    World world(layout);
    layout.meet();
    std::vector<std::thread> threads;
    for (const Rank& one : world.own()) {
      std::byte* const memory = one.put(Bytes(1));
      threads.emplace_back([&, memory] {
        ncclResult_t result = ncclSuccess;
        while (result == ncclSuccess) result = receive(world, one, memory);
        overtaken_by_abort(result);
      });
      std::this_thread::sleep_for(2ms);
      abort(one);
    }
    for (std::thread& thread : threads) thread.join();
    world.own().clear();
  }
  if (layout.processes > 1) return;
  // A collective that waits for another rank, and calls behind it.
  World world(layout);
  const Rank& one = world.own().front();
  std::byte* const memory = one.put(Bytes(1));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      overtaken_by_abort(ncclAllReduce(memory, memory, 1, ncclInt8, ncclSum, one.comm, one.stream));
    });
  std::this_thread::sleep_for(20ms);
  world.each(abort);
  for (std::thread& thread : threads) thread.join();
  world.own().clear();
}

void scaled_inputs_outlive(const Layout& layout) {
  // More than what else comes and goes on the devices meanwhile.
  constexpr std::size_t count = 102400, output = count * sizeof(float);
  const std::size_t input = output * static_cast<std::size_t>(layout.size());
  World world(layout), other(layout);
  const std::vector<Rank> ranks = std::exchange(world.own(), {});
  std::vector<std::byte*> in, out;
  std::vector<std::size_t> given(devices);  // bytes on each device, with most of the scaled inputs
  for (const Rank& one : ranks) {
    in.push_back(one.put(Bytes(input)));
    out.push_back(one.put(Bytes(output)));
  }
  for (int i = 0; i < devices; ++i) given[static_cast<std::size_t>(i)] = device(i).allocated();
  std::atomic<bool> let_go = false;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Rank& one = ranks[i];
    given[static_cast<std::size_t>(one.device)] += input - input / 2 / ranks.size();
    one.on().run(one.stream, [&] { let_go.wait(false); });
    float two = 2;
    ncclRedOp_t op{};
    ok(ncclRedOpCreatePreMulSum(&op, &two, ncclFloat, ncclScalarHostImmediate, one.comm));
    threads.emplace_back([&, i, op] {
      const ncclResult_t code =
          ncclReduceScatter(in[i], out[i], count, ncclFloat, op, one.comm, one.stream);
      CHECK((code == ncclSuccess || code == ncclRemoteError));  // streams held, or complete
    });
  }
  for (const Rank& one : ranks)
    CHECK(
        until([&] { return one.on().allocated() >= given[static_cast<std::size_t>(one.device)]; }));
  other.meet();  // all ranks have given theirs
  for (const Rank& one : ranks) ok(ncclCommAbort(one.comm));
  for (std::thread& thread : threads) thread.join();
  std::vector<std::size_t> left;  // on each device, without what is freed below
  for (int i = 0; i < devices; ++i) left.push_back(device(i).allocated());
  // Each block of put() has a byte more, and begins at a multiple of 256.
  for (const Rank& one : ranks)
    left[static_cast<std::size_t>(one.device)] -= 2 * input + output + 2 * 256;
  // What others take meanwhile is theirs.
  const Bytes theirs(input, std::byte{0xaa});
  std::vector<std::byte*> taken;
  for (const Rank& one : ranks) taken.push_back(one.put(theirs));
  let_go = true;
  let_go.notify_all();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Rank& one = ranks[i];
    one.synchronize();
    CHECK((one.got(taken[i], input) == theirs));
    for (std::byte* const memory : {in[i], out[i], taken[i]}) one.free(memory);
  }
  for (const Rank& one : std::exchange(other.own(), {})) ok(ncclCommDestroy(one.comm));
  for (const Rank& one : ranks)
    CHECK(
        until([&] { return one.on().allocated() <= left[static_cast<std::size_t>(one.device)]; }));
}

void without_threads(const Layout& layout) {
  const int strands = layout.ranks_each;
  if (strands > 1) {
    World world(layout);
    std::vector<std::byte*> data;
    for (const Rank& one : world.own()) data.push_back(one.put(ints(10, one.rank)));
    ok(ncclGroupStart());
    for (std::size_t i = 0; i < data.size(); ++i) {
      const Rank& one = world.own()[i];
      ok(ncclAllReduce(data[i], data[i], 10, ncclInt32, ncclSum, one.comm, one.stream));
    }
    {
      const FewThreads one_too_few(strands - 2);
      failed(ncclGroupEnd(), ncclSystemError,
             {std::to_string(strands - 1) + " more threads", "found " + std::to_string(strands - 2),
              "Resource temporarily unavailable"});
    }
    world.synchronize();
    for (std::size_t i = 0; i < data.size(); ++i) {
      const Rank& one = world.own()[i];
      CHECK(one.got(data[i], 40) == ints(10, one.rank));
      ncclResult_t state = ncclSuccess;
      ok(ncclCommGetAsyncError(one.comm, &state));
      CHECK(state == ncclSystemError);
      failed(ncclAllReduce(data[i], data[i], 10, ncclInt32, ncclSum, one.comm, one.stream),
             ncclRemoteError, {"usable communicator", "more threads"}, nullptr);
    }
  }
  // Communicators end without a thread to do it in, and those after them, too.
  World first(layout), second(layout);
  sums(first);
  {
    const FewThreads none(0);
    for (const Rank& one : first.own()) ok(ncclCommDestroy(one.comm));
    first.own().clear();
  }
  sums(second);
}

void without_memory(const Layout& layout) {
  World world(layout);
  const Rank& one = world.own().front();
  std::byte* const data = one.put(ints(10, 0));
  starved(ncclInvalidUsage, [] { return ncclGroupEnd(); });
  starved(ncclInvalidArgument,
          [&] { return ncclSend(data, 1, ncclInt32, layout.size(), one.comm, one.stream); });
  starved(ncclSuccess, [] { return ncclGetLastError(nullptr) ? ncclSuccess : ncclInternalError; });
  starved(ncclSuccess, [&] {
    ncclGroupStart();
    const ncclResult_t given = ncclBroadcast(data, data, 1, ncclInt32, 0, one.comm, one.stream);
    const ncclResult_t end = ncclGroupSimulateEnd(nullptr);
    CHECK(given == end);
    return end;
  });
  starved(ncclInvalidArgument, [&] {  // two strands that are refused when they begin
    ncclGroupStart();
    for (int i = 0; i < 2; ++i) {
      ncclUniqueId none{};
      ncclComm_t comm = nullptr;
      ncclCommInitRank(&comm, 1, none, 0);
    }
    return ncclGroupEnd();
  });
  world.meet();
}

void revoked(const Layout& layout) {
  if (layout.size() < 3) return;
  for (const bool aborts : {false, true}) {
    World world(layout);
    world.meet();
    layout.meet();
    for (const Rank& one : world.own()) {
      std::byte* const memory = one.put(ints(10, 0));
      // Nobody sends this message.
      ok(ncclRecv(memory, 10, ncclInt32, (one.rank + 1) % world.size(), one.comm, one.stream));
      if (aborts) continue;
      ok(ncclCommRevoke(one.comm, NCCL_REVOKE_DEFAULT));
      for (const std::size_t count : {0, 1})
        failed(ncclSend(memory, count, ncclInt32, 0, one.comm, one.stream), ncclInvalidArgument,
               {"in use", "ncclCommRevoke"});
    }
    int excluded[] = {world.size() - 2};
    std::vector<Rank> rest;
    for (const Rank& one : world.own())
      if (one.rank != excluded[0]) rest.push_back(one);
    std::vector<ncclComm_t> made(rest.size());
    ok(ncclGroupStart());
    for (std::size_t i = 0; i < rest.size(); ++i)
      ok(ncclCommShrink(rest[i].comm, excluded, 1, &made[i], nullptr,
                        aborts ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT));
    ok(ncclGroupEnd());
    for (const Rank& one : world.own()) {
      if (one.rank == excluded[0] && aborts) ok(ncclCommRevoke(one.comm, NCCL_REVOKE_DEFAULT));
      one.synchronize();  // the streams go on
    }
    for (std::size_t i = 0; i < rest.size(); ++i) {
      REQUIRE(made[i] != nullptr);
      int rank = -1, count = 0;
      ok(ncclCommUserRank(made[i], &rank));
      ok(ncclCommCount(made[i], &count));
      CHECK(rank == (rest[i].rank < excluded[0] ? rest[i].rank : rest[i].rank - 1));
      CHECK(count == world.size() - 1);
      ncclResult_t state = ncclInternalError;
      ok(ncclCommGetAsyncError(made[i], &state));
      CHECK(state == ncclSuccess);
      rest[i].comm = made[i];
    }
    World survivors(world.size() - 1, rest);
    for (int round = 0; round < 3; ++round) sums(survivors);
  }
}

}  // namespace nccl_stand_in

void* operator new(std::size_t bytes) {
  int& left = nccl_stand_in::allocations_left;
  if (left == 0) throw std::bad_alloc();
  if (left > 0) --left;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
// The address sanitizer has one of its own, whose memory is not malloc's.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
