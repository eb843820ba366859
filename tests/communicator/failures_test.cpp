#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "baton/forwarding.hpp"
#include "baton/memory.hpp"
#include "baton/wait.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace support;
using namespace std::chrono_literals;

namespace {

/// Gives up after a time that no rank needs for a step, also on a loaded machine.
Options patient() { return giving_up_after(2s); }

/// Refused because of what happened before.
void refuses_further_calls(Communicator& c) {
  std::vector<float> x(4);
  const Error later = error_of([&] { c.all_reduce(x, sum); });
  CHECK(later.code == ErrorCode::transport);
  CHECK(holds(later.what(), {"failed earlier"}));
  CHECK(error_of([&] { c.start_barrier(); }).code == ErrorCode::transport);
  CHECK(error_of([&] { c.send(x, (c.rank() + 1) % c.size()); }).code == ErrorCode::transport);
}

}  // namespace

TEST_CASE("timeout: who waits for whom, in which operation and step") {
  std::latch others(3);
  on_ranks(
      4,
      [&](Communicator& c) {
        std::vector<float> x(10);
        if (c.rank() == 2) return others.wait();  // never calls, but stays
        const Error error = error_of([&] { c.all_reduce(x, sum, {"gather_broadcast", 0}); });
        CHECK(error.code == ErrorCode::timeout);
        CHECK(error.rank == c.rank());
        CHECK(error.peer == (c.rank() == 0 ? 2 : 0));
        CHECK(error.step >= 0);
        CHECK(holds(error.operation, {"all_reduce #"}));
        CHECK(holds(error.what(), {"all_reduce #", "2 s", "rank 2 has not entered it",
                                   "rank " + std::to_string(c.rank()) + " waits for rank " +
                                       std::to_string(error.peer) + " (step",
                                   "recv 40 B"}));
        refuses_further_calls(c);
        others.count_down();
      },
      patient());
}

TEST_CASE("timeout: nonblocking, and with checking on") {
  Options options = patient();
  std::latch two(2), one(1);
  on_ranks(
      3,
      [&](Communicator& c) {
        if (c.rank() == 1) return two.wait();
        std::vector<float> x(10);
        Request request = c.start_all_reduce(x, sum, {"ring", 0});
        const Error error = error_of([&] { request.wait(); });
        CHECK(error.code == ErrorCode::timeout);
        CHECK(holds(error.what(), {"waits for rank"}));
        two.count_down();
      },
      options);
  options.check = true;
  on_ranks(
      2,
      [&](Communicator& c) {
        if (c.rank() == 1) return one.wait();
        std::vector<float> x(10);
        const Error error = error_of([&] { c.all_reduce(x, sum); });
        CHECK(error.code == ErrorCode::timeout);
        CHECK(error.peer == 1);
        CHECK(holds(error.what(), {"all_reduce", "waits for rank 1", "compare the call"}));
        one.count_down();
      },
      options);
}

TEST_CASE("timeout: send and recv, and making a communicator") {
  std::latch one(1);
  on_ranks(
      2,
      [&](Communicator& c) {
        if (c.rank() == 1) return one.wait();
        std::vector<float> x(10'000);
        CHECK(
            holds(error_of([&] { c.recv(x, 1, 5); }).what(), {"recv", "rank 0 waits for rank 1"}));
        one.count_down();
      },
      patient());
  auto transports = thread_transports(2);
  const Error error =
      error_of([&] { const Communicator alone(std::move(transports[1]), patient()); });
  CHECK(error.code == ErrorCode::timeout);
  CHECK(holds(error.what(), {"of 2 ranks cannot be made", "rank 0 does not answer"}));
  CHECK(error.operation == "agreement on options #1");
  CHECK(error.rank == 1);
  CHECK(error.peer == 0);
}

TEST_CASE("timeout: the longest one is not over at once") {
  on_ranks(
      2,
      [](Communicator& c) {
        if (c.rank() == 1) std::this_thread::sleep_for(100ms);
        c.barrier();
        Communicator part = c.split(0);
        std::vector<float> x(1, 1);
        Request request = part.start_all_reduce(x, sum);
        if (c.rank() == 0) std::this_thread::sleep_for(100ms);
        wait(request, [] {});
        CHECK(x[0] == 2);
      },
      giving_up_after(std::chrono::milliseconds::max()));
}

TEST_CASE("timeout: only silence counts, not how long the whole takes") {
  on_ranks(
      2,
      [](Communicator& c) {
        std::vector<float> x(20, 1);
        const Op slow = Op::user(
            [](void* into, const void* left, const void* right, std::size_t count, void*) {
              std::this_thread::sleep_for(130ms);  // 20 times: longer than the timeout
              host::fold(OpKind::sum, Datatype::f32)(into, left, right, count);
            },
            nullptr, true, "slow");
        c.all_reduce(x, slow, {"recursive_doubling", 4});
        CHECK(x == std::vector<float>(20, 2));
      },
      patient());
}

TEST_CASE("without checking, the receiver finds lengths that do not fit") {
  std::mutex mutex;
  std::vector<std::string> said;
  on_ranks(
      2,
      [&](Communicator& c) {
        std::vector<float> x(c.rank() == 0 ? 4 : 5);
        const Error error = error_of([&] { c.all_reduce(x, sum, {"recursive_doubling", 0}); });
        CHECK(error.code == ErrorCode::truncated);
        CHECK(error.peer == 1 - c.rank());
        refuses_further_calls(c);
        const std::lock_guard lock(mutex);
        said.emplace_back(error.what());
      },
      patient());
  REQUIRE(said.size() == 2);
  CHECK(said[0] == said[1]);
  INFO(said[0]);
  const bool first = said[0].find("rank 0 found") != std::string::npos;
  CHECK(holds(said[0], {"all_reduce #", "of communicator 'world' failed: ranks disagree about it",
                        "of 4 f32, sum (recursive_doubling) on rank 0", "of 5 f32", "on rank 1",
                        first ? "rank 0 found" : "rank 1 found", first ? "16 bytes" : "20 bytes",
                        first ? "found 20" : "found 16"}));
}

TEST_CASE("an operation that throws breaks the communicator, not the program") {
  std::latch both(2);  // whoever threw first would tell the other
  on_ranks(
      2,
      [&](Communicator& c) {
        const Op throws = Op::user(
            [](void*, const void*, const void*, std::size_t, void* both) {
              static_cast<std::latch*>(both)->arrive_and_wait();
              throw std::runtime_error("no sum today");
            },
            &both, true, "throws");
        std::vector<float> x(4);
        CHECK_THROWS_WITH_AS(c.all_reduce(x, throws, {"recursive_doubling", 0}), "no sum today",
                             std::runtime_error);
        refuses_further_calls(c);
      },
      patient());
}

TEST_CASE("an operation that throws an Error of a wrong call fails on all ranks") {
  for (const ErrorCode code : {ErrorCode::invalid_argument, ErrorCode::mismatch}) {
    for (const bool check : {false, true}) {
      CAPTURE(check);
      std::latch over(2);
      Options options = patient();
      options.check = check;
      on_ranks(
          2,
          [&](Communicator& c) {
            struct Fold {
              bool throws;
              ErrorCode code;
            } fold{c.rank() == 0, code};
            const Op op = Op::user(
                [](void* into, const void* left, const void*, std::size_t count, void* context) {
                  const Fold& fold = *static_cast<const Fold*>(context);
                  if (fold.throws) throw Error(fold.code, "no sum today");
                  std::memmove(into, left, count * sizeof(float));
                },
                &fold, true, "throws");
            std::vector<float> x(4);
            const Error error = error_of([&] { c.all_reduce(x, op, {"ring", 0}); });
            CHECK(error.code == ErrorCode::transport);  // those two promise that nothing was sent
            CHECK(holds(error.operation, {"all_reduce #"}));
            CHECK(holds(error.what(), {"no sum today"}));
            refuses_further_calls(c);
            over.arrive_and_wait();
          },
          options);
    }
  }
}

TEST_CASE("a request that has failed goes no further while others do") {
  std::latch both(2);
  on_ranks(
      2,
      [&](Communicator& c) {
        int folds = 0;
        const Op throws = Op::user(
            [](void*, const void*, const void*, std::size_t, void* count) {
              throw std::runtime_error("fold " + std::to_string(++*static_cast<int*>(count)));
            },
            &folds, true, "throws");
        std::vector<float> x(4), y(4);
        Request fails = c.start_all_reduce(x, throws, {"recursive_doubling", 4});
        Request waits = c.start_recv(y, 1 - c.rank());
        while (!fails.done()) static_cast<void>(waits.test());
        for (int i = 0; i < 100; ++i) CHECK_FALSE(waits.test());
        both.arrive_and_wait();  // wait() tells the other rank of the failure
        CHECK_THROWS_WITH_AS(fails.wait(), "fold 1", std::runtime_error);
        CHECK(folds == 1);
      },
      patient());
}

TEST_CASE("a request that is dropped while an exception passes does not wait") {
  // Without a timeout, whoever waits does so until the watchdog ends the test.
  on_ranks(
      2,
      [](Communicator& c) {
        std::vector<float> x(4);
        if (c.rank() == 1) return;
        CHECK_THROWS_AS(([&] {
                          const Request request = c.start_all_reduce(x, sum);
                          throw std::runtime_error("elsewhere");
                        }()),
                        std::runtime_error);
        refuses_further_calls(c);
      },
      Options());
}

TEST_CASE("the first failure is the reason, whatever is dropped after it") {
  std::latch over(2);
  on_ranks(
      2,
      [&](Communicator& c) {
        std::vector<float> x(4), y(4);
        if (c.rank() == 0) {
          Request first = c.start_all_reduce(x, sum);
          {
            const Request second = c.start_recv(std::span(y), 1);
            first.abandon("it rains");
          }
          CHECK(holds(error_of([&] { c.barrier(); }).what(), {"failed earlier: it rains"}));
        }
        over.arrive_and_wait();
      },
      patient());
}

namespace {

/// A transport whose sends to the last rank fail.
class Cut final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    if (cut && peer == size() - 1) throw Error(ErrorCode::transport, "the wire is cut");
    inner().isend(peer, tag, data, bytes, message);
  }
  std::atomic<bool> cut = false;

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<Cut>(std::move(part));
  }
};

}  // namespace

TEST_CASE("a call that fails when it starts is told to all, with its number") {
  for (const bool message : {false, true}) {
    std::latch made(3), over(3);
    run_threads(3, [&](std::unique_ptr<Transport> transport) {
      auto owned = std::make_unique<Cut>(std::move(transport));
      Cut& wire = *owned;
      Communicator c(std::move(owned));  // without a timeout
      made.arrive_and_wait();
      std::vector<float> x(4);
      std::string said = "the wire is cut";
      if (c.rank() == 0) {
        wire.cut = true;
        const Error error = error_of([&] {
          message ? c.start_send(x, 2).wait() : c.start_broadcast(x, 0, {"linear", 0}).wait();
        });
        CHECK(error.code == ErrorCode::transport);
        CHECK(error.rank == 0);
        CHECK(holds(error.operation, {message ? "send" : "broadcast #"}));
        CHECK(holds(error.what(), {said}));
        CHECK(holds(error_of([&] { c.barrier(); }).what(), {"failed earlier: ", said}));
      } else if (c.rank() == 2) {
        const Error error = error_of([&] {
          message ? static_cast<void>(c.recv(std::span(x), 0)) : c.broadcast(x, 0, {"linear", 0});
        });
        CHECK(error.code == ErrorCode::transport);
        CHECK(holds(error.what(), {said}));
      }
      over.arrive_and_wait();
    });
  }
}

TEST_CASE(
    "without checking, ranks that disagree about a length all fail, also where the sender waits") {
  // Short and long messages, each way: buffered, or until the receiver comes.
  constexpr std::size_t lengths[] = {1, 100, 2000, 300'000};
  for (const std::uint64_t seed : {0, 5})
    for (const std::size_t sent : lengths)
      for (const std::size_t expected : lengths) {
        if (sent == expected) continue;
        CAPTURE(sent);
        CAPTURE(expected);
        std::mutex mutex;
        std::vector<std::string> said;
        on_ranks(3,
                 [&](Communicator& c) {
                   std::vector<float> x(c.rank() == 0 ? sent : expected);
                   const Error error = error_of([&] {
                     c.broadcast(x, 0, {"linear", 0});
                     c.barrier();
                   });
                   CHECK(error.code == ErrorCode::truncated);
                   const std::lock_guard lock(mutex);
                   said.emplace_back(error.what());
                 },
                 test_options(), {.seed = seed});
        REQUIRE(said.size() == 3);
        CHECK(said[0] == said[1]);
        CHECK(said[0] == said[2]);
      }
}

namespace {

/// A transport that cannot cancel sends, as those between processes: a peer that comes later
/// receives from memory that the sender has used again.
class Uncancelling final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  Capabilities capabilities() const override {
    Capabilities can = inner().capabilities();
    can.cancels = false;
    return can;
  }
  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    inner().isend(peer, tag, data, bytes, message);
    sent_.insert(&message);
  }
  bool test(Message& message, std::size_t& bytes) override {
    const bool done = inner().test(message, bytes);
    if (done) sent_.erase(&message);
    return done;
  }
  void cancel(Message& message) override {
    if (!sent_.contains(&message)) inner().cancel(message);
  }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<Uncancelling>(std::move(part));
  }
  std::set<const Message*> sent_;
};

}  // namespace

TEST_CASE("a late receive from a rank that has failed meanwhile is an error, not a wrong result") {
  static std::vector<std::int64_t> out(5000, 1);  // outlives the message
  std::atomic<int> course = 0;
  Watchdog watchdog(3, std::chrono::seconds(60));
  run_threads(3,
              [&](std::unique_ptr<Transport> transport) {
                Communicator c(std::make_unique<Uncancelling>(std::move(transport)),
                               giving_up_after(std::chrono::milliseconds(300)));
                const auto wait_for = [&](int stage) {
                  while (course < stage) std::this_thread::yield();
                };
                std::vector<std::int64_t> in(out.size());
                if (c.rank() == 1) {
                  Request send = c.start_send(out, 0, 7);
                  const Error error = error_of([&] { c.recv(in, 2, 7); });
                  CHECK(holds(error.what(), {"rank 2 has not answered it"}));
                  std::ranges::fill(out, 666);
                  course = 1;
                } else if (c.rank() == 0) {
                  wait_for(1);
                  const Error error = error_of([&] { c.recv(in, 1, 7); });
                  CHECK(holds(error.what(), {"recv of communicator", "rank 1 has failed",
                                             "rank 2 has not answered it"}));
                  CHECK(error.peer == 1);
                  course = 2;
                } else {
                  wait_for(2);
                  // It hears of the failure in the next collective.
                  const Error error = error_of([&] { c.barrier(); });
                  CHECK(holds(error.what(), {"recv", "rank 2 has not answered it"}));
                  course = 3;
                }
                wait_for(3);
                watchdog.returned(c.rank());
              },
              {.eager_bytes = 0});
}
