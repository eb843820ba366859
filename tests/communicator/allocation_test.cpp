#include "support/allocations.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>

#include "support/ranks.hpp"
#include "transport/thread/message.hpp"

using namespace baton;
using namespace support;

namespace {

/// Allocations of `repeats` calls, after some that may allocate. A call that has waited for 20 ms
/// looks at the rank that it waits for, which may allocate: such calls do not count.
std::size_t repeated(int repeats, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 5; ++i) call();
  std::size_t found = 0;
  for (int i = 0; i < repeats; ++i) {
    const Clock::time_point begin = Clock::now();
    const AllocationCount allocations;
    call();
    if (Clock::now() - begin < std::chrono::milliseconds(20)) found += allocations.count();
  }
  return found;
}

struct Named {
  std::string name;
  std::function<void()> call;
};

/// Buffers for `n` elements a rank, and calls on them.
struct Calls {
  Communicator& c;
  std::vector<float> in, out, all, wide;
  Choice long_name{"recursive_doubling", 0}, cut{"ring", 256};
  std::vector<std::int64_t> counts;
  std::vector<Data> list;
  PersistentCall persistent;

  Calls(Communicator& c, std::size_t n)
      : c(c),
        in(n),
        out(n),
        all(n * static_cast<std::size_t>(c.size())),
        wide(all.size()),
        counts(static_cast<std::size_t>(c.size()), static_cast<std::int64_t>(n)),
        list{in, all},
        persistent(c.plan(calls::all_reduce(in, out, sum))) {}

  std::vector<Named> named() {
    return {
        {"all_reduce", [&] { c.all_reduce(in, out, sum); }},
        {"all_reduce in place", [&] { c.all_reduce(in, sum); }},
        {"all_reduce avg", [&] { c.all_reduce(in, out, avg); }},
        {"all_reduce by a long name", [&] { c.all_reduce(in, out, sum, long_name); }},
        {"all_reduce in segments", [&] { c.all_reduce(in, out, sum, cut); }},
        {"broadcast", [&] { c.broadcast(in, 0); }},
        {"all_gather", [&] { c.all_gather(in, all); }},
        {"reduce_scatter", [&] { c.reduce_scatter(all, out, sum); }},
        {"all_to_all", [&] { c.all_to_all(all, wide); }},
        {"reduce", [&] { c.reduce(in, out, sum, 0); }},
        {"gather", [&] { c.gather(in, all, 0); }},
        {"scatter", [&] { c.scatter(all, out, 0); }},
        {"scan", [&] { c.scan(in, out, sum); }},
        {"all_gather_v", [&] { c.all_gather_v(in, all, counts); }},
        {"barrier", [&] { c.barrier(); }},
        {"list", [&] { c.all_reduce(list, sum); }},
        {"start and wait", [&] { c.start_all_reduce(in, out, sum).wait(); }},
        {"two at once",
         [&] {
           Request first = c.start_all_reduce(in, out, sum), second = c.start_all_gather(out, all);
           first.wait();
           second.wait();
         }},
        {"persistent, run", [&] { persistent.run(); }},
        {"persistent, started", [&] { persistent.start().wait(); }},
        {"send and recv",
         [&] {
           if (c.size() == 1) return;
           const int next = (c.rank() + 1) % c.size();
           const int prev = (c.rank() + c.size() - 1) % c.size();
           Request sent = c.start_send(in, next);
           c.recv(out, prev);
           sent.wait();
         }},
        {"by turns",
         [&] {
           c.all_reduce(in, out, sum);
           c.all_reduce(in, sum);
           c.broadcast(out, 0);
           c.all_gather(in, all);
         }},
    };
  }
};

}  // namespace

TEST_CASE("the count counts") {
  std::vector<void*> kept;
  kept.reserve(10);
  const AllocationCount allocations;
  kept.push_back(std::malloc(10));
  kept.push_back(std::calloc(3, 10));
  kept.push_back(std::realloc(nullptr, 10));
  kept.push_back(std::aligned_alloc(64, 128));
  void* aligned = nullptr;
  CHECK(posix_memalign(&aligned, 64, 100) == 0);
  kept.push_back(aligned);
  const std::size_t before = allocations.count();
  auto* volatile made = new std::string(100, 'x');
  delete made;
  CHECK(before >= 5);
  CHECK(allocations.count() > before);
  for (void* block : kept) std::free(block);
}

TEST_CASE("the first buffered message allocates nothing, whenever it comes") {
  threads::BufferPool pool(4096);
  const AllocationCount allocations;
  threads::Buffer* const first = pool.take();
  const std::size_t found = allocations.count();
  CHECK(first != nullptr);
  CHECK(found == 0);
}

TEST_CASE("a repeated call allocates nothing") {
  for (const int size : {1, 2, 4}) {
    for (const std::size_t n : {2u, 500u, 20'000u}) {
      on_ranks(size, [&](Communicator& c) {
        Calls calls(c, n);
        for (const Named& each : calls.named()) {
          const std::size_t found = repeated(20, each.call);
          CHECK_MESSAGE(found == 0, each.name, " of ", n, " elements on ", size, " ranks: ", found);
        }
      });
    }
  }
}
