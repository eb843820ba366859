#include "baton/thread.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "baton/forwarding.hpp"
#include "contract.hpp"
#include "support/sanitizer.hpp"

using namespace baton;
using namespace std::chrono_literals;
using contract::Bytes;
using contract::finish;
using contract::pattern;

namespace {

/// Messages given up after more and more steps.
constexpr int rounds = support::under_sanitizer ? 20 : 60;

/// Takes a while.
void wander(int steps) {
  std::atomic<int> step = 0;
  while (step.fetch_add(1, std::memory_order_relaxed) < steps) continue;
}

}  // namespace

TEST_CASE("thread transport: keeps the contract") {
  for (int size : {1, 2, 3, 4, 5, 7, 8, 16}) {
    CAPTURE(size);
    run_threads(size, [](auto t) { contract::everything(*t, true); });
  }
}

TEST_CASE("thread transport: keeps the contract under random delays") {
  for (int size : {1, 2, 3, 5, 8})
    for (std::uint64_t seed : {1, 2, 3}) {
      CAPTURE(size);
      CAPTURE(seed);
      run_threads(size, [](auto t) { contract::everything(*t, true); }, {.seed = seed});
    }
}

TEST_CASE("thread transport: keeps the contract if every message waits for its receiver") {
  run_threads(4, [](auto t) { contract::everything(*t, true); }, {.eager_bytes = 0});
}

TEST_CASE("thread transport: hundreds of ranks") {
  run_threads(64, [](auto t) { contract::traffic(*t, 3, 1); });
  run_threads(256, [](auto t) {
    contract::traffic(*t, 1, 1, 5000);
    const auto part = t->split(t->rank() % 16, 0);
    contract::traffic(*part, 2, 2, 5000);
  });
}

TEST_CASE("thread transport: small messages complete without their receiver, long ones do not") {
  auto ranks = thread_transports(2, {.eager_bytes = 100});
  for (const std::size_t length : {100u, 101u}) {
    Bytes data = pattern(length, 1);
    Message m;
    std::size_t bytes = 0;
    ranks[0]->isend(1, 0, data.data(), length, m);
    const bool complete = ranks[0]->test(m, bytes);
    CHECK(complete == (length <= 100));
    if (complete) std::fill(data.begin(), data.end(), std::byte{});  // it has been copied
    CHECK(contract::recv(*ranks[1], 0, 0, length) == pattern(length, 1));
    if (!complete) CHECK(ranks[0]->test(m, bytes));
  }
}

TEST_CASE("thread transport: when buffers run out, small messages wait, and none is lost") {
  constexpr std::size_t count = 1000;
  auto ranks = thread_transports(2);
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::deque<Message> messages;
    std::deque<std::uint64_t> values;
    for (std::uint64_t i = 0; i < count; ++i)
      ranks[0]->isend(1, 0, &values.emplace_back(i), sizeof i, messages.emplace_back());
    std::size_t bytes = 0;
    CHECK(ranks[0]->test(messages.front(), bytes));  // the buffers are free again
    messages.pop_front();
    CHECK_FALSE(ranks[0]->test(messages.back(), bytes));
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t got = count;
      Message m;
      ranks[1]->irecv(0, 0, &got, sizeof got, m);
      CHECK(finish(*ranks[1], m, "recv") == sizeof got);
      CHECK(got == i);
    }
    for (Message& m : messages) finish(*ranks[0], m, "send");
  }
}

TEST_CASE("thread transport: delays do delay, the same way for the same seed") {
  const auto tests_needed = [](std::uint64_t seed) {
    auto ranks = thread_transports(2, {.seed = seed});
    std::vector<int> tests;
    for (int i = 0; i < 40; ++i) {
      Message send, recv;
      std::uint64_t value = 7, got = 0;
      std::size_t bytes = 0;
      ranks[0]->isend(1, 0, &value, sizeof value, send);
      ranks[1]->irecv(0, 0, &got, sizeof got, recv);
      int failed = 0;
      while (!ranks[1]->test(recv, bytes)) ++failed;
      CHECK(got == 7);
      tests.push_back(failed);
      finish(*ranks[0], send, "send");
    }
    return tests;
  };
  CHECK(tests_needed(1) == tests_needed(1));
  CHECK(tests_needed(1) != tests_needed(2));
  const auto tests = tests_needed(1);
  CHECK(*std::max_element(tests.begin(), tests.end()) > 5);
  CHECK(*std::min_element(tests.begin(), tests.end()) == 0);
}

TEST_CASE(
    "thread transport: a send given up while its receiver copies is read whole or not at all") {
  constexpr std::size_t length = 1 << 22;  // long enough to be met in the middle
  for (std::uint64_t seed : {0, 1}) {
    CAPTURE(seed);
    std::atomic<int> received = 0;
    std::barrier together(2);
    run_threads(2,
                [&](auto t) {
                  Bytes data(length);
                  for (int k = 1; k <= rounds; ++k) {
                    Message m;
                    std::fill(data.begin(), data.end(), std::byte(t->rank() == 0 ? k : 0));
                    together.arrive_and_wait();
                    if (t->rank() == 0) {
                      t->isend(1, k, data.data(), length, m);
                      wander(60'000 / rounds * k);
                      if (k % 8 == 0)
                        finish(*t, m, "send");
                      else
                        t->cancel(m);
                      std::fill(data.begin(), data.end(), std::byte{});
                      contract::send(*t, 1, 1000, {});
                    } else {
                      t->irecv(0, k, data.data(), length, m);
                      contract::recv(*t, 0, 1000, 0);
                      std::size_t bytes = 0;
                      bool complete = false;
                      for (int i = 0; i < 20 && !complete; ++i) complete = t->test(m, bytes);
                      if (complete) {
                        CHECK(bytes == length);
                        ++received;
                      } else {
                        t->cancel(m);
                      }
                      CHECK(data == Bytes(length, std::byte(complete ? k : 0)));
                    }
                  }
                },
                {.seed = seed});
    CHECK(received >= rounds / 8);
  }
}

TEST_CASE("thread transport: a receive given up while its sender copies is written no more") {
  constexpr std::size_t length = 1 << 22;
  std::barrier together(2);
  run_threads(2, [&](auto t) {
    Bytes data(length);
    for (int k = 1; k <= rounds; ++k) {
      Message m;
      std::fill(data.begin(), data.end(), std::byte{});
      if (t->rank() == 0) {
        together.arrive_and_wait();
        wander(100);
        t->isend(1, k, data.data(), length, m);
        contract::recv(*t, 1, 1000, 0);
        t->cancel(m);
      } else {
        t->irecv(0, k, data.data(), length, m);
        together.arrive_and_wait();
        wander(60'000 / rounds * k);
        t->cancel(m);
        std::fill(data.begin(), data.end(), std::byte{1});
        contract::send(*t, 0, 1000, {});
        CHECK(data == Bytes(length, std::byte{1}));
      }
    }
  });
}

TEST_CASE(
    "thread transport: a rank that has left leaves its peers pending, and what it sent arrives") {
  auto ranks = thread_transports(3);
  std::size_t bytes = 0;
  Message sent, posted, abandoned_recv, abandoned_send;
  Bytes room(10), data(100000);
  {
    const std::uint64_t value = 42;
    ranks[1]->isend(0, 0, &value, sizeof value, sent);
    REQUIRE(ranks[1]->test(sent, bytes));
    ranks[1]->irecv(0, 1, room.data(), room.size(), abandoned_recv);
    ranks[1]->isend(0, 2, data.data(), data.size(), abandoned_send);
    ranks[1].reset();
  }
  CHECK(contract::recv(*ranks[0], 1, 0, 8) == [] {
    Bytes b(8);
    b[0] = std::byte{42};
    return b;
  }());
  Message late;
  const Bytes big = pattern(100000, 1);
  ranks[0]->isend(1, 1, big.data(), big.size(), late);
  ranks[0]->irecv(1, 2, data.data(), data.size(), posted);
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(ranks[0]->test(late, bytes));
    CHECK_FALSE(ranks[0]->test(posted, bytes));
    ranks[0]->idle(1us);
  }
  ranks[0]->cancel(late);
  ranks[0]->cancel(posted);
  CHECK(room == Bytes(10));
  // The others still talk, but cannot split.
  contract::send(*ranks[0], 2, 0, pattern(8, 3));
  CHECK(contract::recv(*ranks[2], 0, 0, 8) == pattern(8, 3));
  try {
    ranks[0]->split(0, 0);
    FAIL("a split without rank 1 was expected to fail");
  } catch (const Error& error) {
    CHECK(error.code == ErrorCode::transport);
    CHECK(error.peer == 1);
  }
}

TEST_CASE("thread transport: idle leaves the core to others, and ends when a message is complete") {
  auto ranks = thread_transports(2);
  const auto cpu = [] {
    timespec now{};
    REQUIRE(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  const auto cpu_before = cpu();
  const auto before = std::chrono::steady_clock::now();
  ranks[0]->idle(100ms);
  CHECK(std::chrono::steady_clock::now() - before >= 100ms);
  CHECK(cpu() - cpu_before < 10ms);

  Message m;
  std::uint64_t got = 0;
  std::size_t bytes = 0;
  ranks[0]->irecv(1, 0, &got, sizeof got, m);
  while (ranks[0]->idle(1ms), std::chrono::steady_clock::now() - before < 110ms) continue;
  std::thread sender([&] {
    std::this_thread::sleep_for(20ms);
    contract::send(*ranks[1], 0, 0, pattern(8, 1));
  });
  while (!ranks[0]->test(m, bytes)) ranks[0]->idle(1h);  // which the message ends
  sender.join();

  // What came between the last test and idle() ends it at once; also in another group of the rank.
  std::unique_ptr<Transport> parts[2];
  std::thread other([&] { parts[1] = ranks[1]->split(0, 0); });
  parts[0] = ranks[0]->split(0, 0);
  other.join();
  ranks[0]->irecv(1, 0, &got, sizeof got, m);
  Message of_part;
  parts[0]->irecv(1, 0, &got, sizeof got, of_part);
  ranks[0]->idle(1us);
  contract::send(*parts[1], 0, 0, pattern(8, 1));
  ranks[0]->idle(1h);
  CHECK_FALSE(ranks[0]->test(m, bytes));
  CHECK(parts[0]->test(of_part, bytes));
  ranks[0]->cancel(m);
}

TEST_CASE("thread transport: a split that one rank has left fails on the others, and names it") {
  const auto check = [](const std::unique_ptr<Transport>& rank, int left) {
    try {
      rank->split(0, 0);
      FAIL_CHECK("expected an Error");
    } catch (const Error& error) {
      CHECK(error.code == ErrorCode::transport);
      CHECK(error.rank == rank->rank());
      CHECK(error.peer == left);
      CHECK(std::string(error.what())
                .find("split needs all 3 ranks, but rank " + std::to_string(left) +
                      " has left the group") != std::string::npos);
    }
  };
  auto ranks = thread_transports(3);
  ranks[2].reset();
  check(ranks[0], 2);
  ranks[0].reset();  // it came to the split
  check(ranks[1], 2);

  // One that waits already is told so.
  ranks = thread_transports(3);
  std::thread waits([&] { check(ranks[0], 1); });
  std::this_thread::sleep_for(5ms);
  ranks[1].reset();
  waits.join();
}

TEST_CASE("run_threads: the exception of the lowest rank is thrown on when all have returned") {
  std::atomic<int> returned = 0;
  const auto run = [&] {
    run_threads(4, [&](auto t) {
      if (t->rank() == 3) throw std::runtime_error("three");
      std::this_thread::sleep_for(5ms);
      ++returned;
      if (t->rank() == 1) throw std::runtime_error("one");
    });
  };
  CHECK_THROWS_WITH(run(), "one");
  CHECK(returned == 3);
  CHECK_THROWS_AS(run_threads(0, [](auto) {}), Error);
}

TEST_CASE("thread transport: threads as if on several hosts") {
  ThreadOptions options;
  options.hosts = {5, 2, 5, 2, 5};
  run_threads(
      5,
      [](std::unique_ptr<Transport> t) {
        contract::hosts(*t);
        CHECK(std::ranges::equal(t->capabilities().hosts, std::vector{0, 1, 0, 1, 0}));
        const auto odd = t->split(t->rank() % 2, 0);
        CHECK(std::ranges::equal(odd->capabilities().hosts,
                                 std::vector(static_cast<std::size_t>(odd->size()), 0)));
        const auto last = t->split(t->rank() < 3 ? -1 : 0, 0);
        if (last) CHECK(std::ranges::equal(last->capabilities().hosts, std::vector{0, 1}));
      },
      options);
  CHECK_THROWS_AS(thread_transports(4, options), Error);
  CHECK(thread_transports(2)[0]->capabilities().hosts.empty());
}

TEST_CASE("recv: a message is given up where waiting for it throws") {
  struct Stops final : ForwardingTransport {
    using ForwardingTransport::ForwardingTransport;
    void idle(std::chrono::microseconds) override {
      throw Error(ErrorCode::transport, "made to fail");
    }
    std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override { return part; }
  };
  auto ranks = thread_transports(1);
  Stops t(std::move(ranks[0]));
  int got = 0, next = 0;
  CHECK_THROWS_AS(recv(t, {0, 3, &got, sizeof got}), Error);
  // Otherwise the receive that was given up would take this message.
  const int sent = 5;
  Message sending, receiving;
  t.isend(0, 3, &sent, sizeof sent, sending);
  t.irecv(0, 3, &next, sizeof next, receiving);
  std::size_t bytes = 0;
  CHECK(t.test(sending, bytes));
  CHECK(t.test(receiving, bytes));
  CHECK(next == 5);
}
