#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <latch>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include "baton/wait.hpp"
#include "support/ranks.hpp"
#include "support/values.hpp"

using namespace baton;
using namespace support;
using namespace std::chrono_literals;

namespace {

using Ints = Guarded<std::int32_t>;

/// A collective under way with what it should bring.
struct UnderWay {
  Ints input, output, expected;
  Request request;
};

Ints sum_of_all(std::uint64_t seed, int size, std::int64_t first, std::int64_t n) {
  Ints out(n, 0);
  for (int rank = 0; rank < size; ++rank) {
    for (std::int64_t i = 0; i < n; ++i) out[i] += value(seed, rank, first + i);
  }
  return out;
}

/// Starts the `kind`-th sort of collective. Elements in the deque stay where they are.
void start(Communicator& c, int kind, std::uint64_t seed, std::int64_t n,
           std::deque<UnderWay>& all) {
  const int size = c.size(), root = static_cast<int>(seed % static_cast<std::uint64_t>(size));
  UnderWay& u = all.emplace_back(UnderWay{Ints(0), Ints(0), Ints(0), {}});
  switch (kind % 5) {
    case 0:
      u.input = Ints::of(seed, c.rank(), n);
      u.output = Ints(n);
      u.expected = sum_of_all(seed, size, 0, n);
      u.request = c.start_all_reduce(u.input.span(), u.output.span(), sum);
      break;
    case 1:
      u.output = c.rank() == root ? Ints::of(seed, root, n) : Ints(n);
      u.expected = Ints::of(seed, root, n);
      u.request = c.start_broadcast(u.output.span(), root);
      break;
    case 2:
      u.input = Ints::of(seed, c.rank(), n);
      u.output = u.expected = Ints(n * size);
      for (std::int64_t i = 0; i < n * size; ++i) {
        u.expected[i] = value(seed, static_cast<int>(i / n), i % n);
      }
      u.request = c.start_all_gather(u.input.span(), u.output.span());
      break;
    case 3:
      u.input = Ints::of(seed, c.rank(), n * size);
      u.output = Ints(n);
      u.expected = sum_of_all(seed, size, c.rank() * n, n);
      u.request = c.start_reduce_scatter(u.input.span(), u.output.span(), sum);
      break;
    default:
      u.input = Ints::of(seed, c.rank(), n * size);
      u.output = u.expected = Ints(n * size);
      for (std::int64_t i = 0; i < n * size; ++i) {
        u.expected[i] = value(seed, static_cast<int>(i / n), c.rank() * n + i % n);
      }
      u.request = c.start_all_to_all(u.input.span(), u.output.span());
  }
}

void check(const UnderWay& u) {
  u.output.check(u.expected.span(), [] { return std::string("nonblocking"); });
}

/// Waits for all in an order of this rank's own.
void finish(const Communicator& c, std::deque<UnderWay>& all, std::uint64_t seed) {
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937_64 generator(seed + static_cast<std::uint64_t>(c.rank()));
  std::shuffle(order.begin(), order.end(), generator);
  for (const std::size_t i : order) {
    if (i % 2 == 0) {
      all[i].request.wait();
    } else {
      while (!all[i].request.test()) std::this_thread::yield();
    }
    check(all[i]);
  }
}

constexpr std::int64_t eager = 40, rendezvous = 5000;

}  // namespace

TEST_CASE("several at once on one communicator, completed in another order on every rank") {
  for (const std::uint64_t seed : {0, 21}) {
    for (const int size : {1, 2, 3, 5, 8}) {
      on_ranks(size,
               [&](Communicator& c) {
                 for (const std::int64_t n : {std::int64_t{0}, eager, rendezvous}) {
                   std::deque<UnderWay> all;
                   for (int kind = 0; kind < 15; ++kind) {
                     start(c, kind, static_cast<std::uint64_t>(kind) + 100, n, all);
                   }
                   finish(c, all, 3);
                 }
               },
               test_options(), {.seed = seed});
    }
  }
}

TEST_CASE("several of one kind share a plan, not its state") {
  on_ranks(4, [](Communicator& c) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::deque<UnderWay> all;
      for (std::uint64_t k = 0; k < 20; ++k) start(c, 0, k, rendezvous, all);
      finish(c, all, 5);
    }
  });
}

TEST_CASE("overlapping communicators, waited for in opposite orders") {
  on_ranks(6, [](Communicator& c) {
    Communicator rows = c.split(c.rank() / 3), columns = c.split(c.rank() % 3);
    for (const std::int64_t n : {eager, rendezvous}) {
      std::deque<UnderWay> all;
      for (int kind = 0; kind < 5; ++kind) {
        start(c, kind, 1, n, all);
        start(rows, kind, 2, n, all);
        start(columns, kind, 3, n, all);
      }
      finish(c, all, 7);
    }
  });
}

TEST_CASE("whoever waits for one advances the others") {
  // Rank 0 waits for the second while rank 1 needs rank 0's part of the first to go on.
  on_ranks(2, [](Communicator& c) {
    Communicator other = c.split(0);
    std::deque<UnderWay> first, second;
    start(c, 0, 1, rendezvous, first);
    start(other, 0, 2, rendezvous, second);
    std::deque<UnderWay>& before = c.rank() == 0 ? second : first;
    std::deque<UnderWay>& after = c.rank() == 0 ? first : second;
    before[0].request.wait();
    after[0].request.wait();
    check(first[0]);
    check(second[0]);
  });
}

TEST_CASE("blocking calls go on while others are under way") {
  on_ranks(5, [](Communicator& c) {
    std::deque<UnderWay> all;
    for (int kind = 0; kind < 5; ++kind) {
      start(c, kind, 1, rendezvous, all);
      std::vector<std::int32_t> one{1};
      c.all_reduce(one, sum);
      CHECK(one[0] == 5);
      c.barrier();
    }
    finish(c, all, 1);
  });
}

TEST_CASE("progress() alone does this rank's part") {
  for (const int alone : {0, 2}) {
    std::atomic<int> finished{0};
    on_ranks(3, [&](Communicator& c) {
      std::deque<UnderWay> all;
      for (int kind = 0; kind < 5; ++kind) start(c, kind, 9, rendezvous, all);
      if (c.rank() == alone) {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        // The others cannot end without this rank, which neither tests nor waits.
        while (finished < c.size() - 1 && std::chrono::steady_clock::now() < limit) {
          c.progress();
          std::this_thread::yield();
        }
        CHECK(finished == c.size() - 1);
      }
      for (UnderWay& u : all) u.request.wait();
      for (const UnderWay& u : all) check(u);
      ++finished;
    });
  }
}

TEST_CASE("requests: empty, moved, dropped") {
  on_ranks(3, [](Communicator& c) {
    Request none;
    none.wait();
    CHECK(none.test());
    std::deque<UnderWay> all;
    start(c, 0, 1, rendezvous, all);
    start(c, 2, 2, rendezvous, all);
    start(c, 3, 3, rendezvous, all);
    Request moved = std::move(all[0].request);
    all[1].request = {};                // waits
    moved = std::move(all[2].request);  // waits for the first
    check(all[0]);
    check(all[1]);
    moved.wait();
    check(all[2]);
    moved.wait();  // complete already
    CHECK(moved.test());
  });
}

TEST_CASE("a request that has failed says so each time") {
  for (const bool waits : {false, true}) {
    CAPTURE(waits);
    on_ranks(2, [&](Communicator& c) {
      std::vector<std::int32_t> x(2);
      if (c.rank() == 1) return c.send(std::span(x).first(1), 0);
      Request request = c.start_recv(x, 1);
      const auto ask = [&] {
        if (waits) return request.wait();
        while (!request.test()) std::this_thread::yield();
      };
      const Error first = error_of(ask);
      CHECK(first.code == ErrorCode::truncated);
      CHECK(request.done());
      CHECK(std::string(error_of(ask).what()) == first.what());
      CHECK(std::string(error_of([&] { request.wait(); }).what()) == first.what());
    });
  }
}

TEST_CASE("a request outlives its communicator object") {
  on_ranks(3, [](Communicator& c) {
    std::deque<UnderWay> all;
    {
      Communicator part = c.split(0);
      start(part, 0, 4, rendezvous, all);
    }
    all[0].request.wait();
    check(all[0]);
  });
}

TEST_CASE("the other nonblocking calls") {
  on_ranks(4, [](Communicator& c) {
    const int root = 2;
    const bool is_root = c.rank() == root;
    const Ints input = Ints::of(8, c.rank(), 30);
    Ints reduced(is_root ? 30 : 0), gathered(is_root ? 120 : 0), prefix(30), before(30);
    Ints scattered(30), both = input, expected_prefix(30, 0), expected_before(30, 0);
    const Ints parts = Ints::of(9, root, 120);
    Request requests[] = {
        c.start_reduce(input.span(), reduced.span(), sum, root),
        c.start_gather(input.span(), gathered.span(), root),
        c.start_scatter(is_root ? ConstData(parts.span()) : ConstData{}, scattered.span(), root),
        c.start_scan(input.span(), prefix.span(), sum),
        c.start_exscan(input.span(), before.span(), sum),
        c.start_all_reduce(both.span(), sum),
        c.start_barrier(),
    };
    for (std::size_t i = std::size(requests); i-- > 0;) requests[i].wait();
    const auto context = [] { return std::string("nonblocking"); };
    for (int rank = 0; rank <= c.rank(); ++rank) {
      for (std::int64_t i = 0; i < 30; ++i) {
        if (rank < c.rank()) expected_before[i] += value(8, rank, i);
        expected_prefix[i] += value(8, rank, i);
      }
    }
    prefix.check(expected_prefix.span(), context);
    if (c.rank() > 0) before.check(expected_before.span(), context);
    both.check(sum_of_all(8, 4, 0, 30).span(), context);
    for (std::int64_t i = 0; i < 30; ++i) CHECK(scattered[i] == value(9, root, c.rank() * 30 + i));
    if (is_root) {
      reduced.check(sum_of_all(8, 4, 0, 30).span(), context);
      for (std::int64_t i = 0; i < 120; ++i) {
        CHECK(gathered[i] == value(8, static_cast<int>(i / 30), i % 30));
      }
    }
  });
}

TEST_CASE("a request tells whom it waits for, and can be given up") {
  on_ranks(2, [](Communicator& c) {
    if (c.rank() == 1) return;
    std::int32_t got = 0;
    Request request = c.start_recv(std::span(&got, 1), 1);
    CHECK(request.waits_for().find("rank 1") != std::string::npos);
    CHECK_FALSE(c.progress());
    request.abandon("nobody sends");
    CHECK(request.done());
    CHECK(request.waits_for().empty());
    CHECK(std::string(error_of([&] { c.barrier(); }).what()).find("nobody sends") !=
          std::string::npos);
  });
}

TEST_CASE("what has ended can be given up without harm") {
  on_ranks(2, [](Communicator& c) {
    Request request = c.start_barrier();
    while (!request.done()) c.progress();
    request.abandon("too late");
    Request().abandon("empty");
    c.barrier();
  });
}

TEST_CASE("waiting with something else to do: a message that came meanwhile is no timeout") {
  std::latch asked(1), sent(1);
  on_ranks(
      2,
      [&](Communicator& c) {
        std::vector<std::int32_t> x(4, c.rank());
        if (c.rank() == 1) {
          asked.wait();
          c.send(x, 0);
          return sent.count_down();
        }
        Request request = c.start_recv(std::span(x), 1);
        bool first = true;
        wait(request, [&] {
          if (!std::exchange(first, false)) return;
          asked.count_down();
          sent.wait();
          std::this_thread::sleep_for(1500ms);  // more than the timeout
        });
        CHECK(x == std::vector<std::int32_t>(4, 1));
      },
      giving_up_after(1s));
}

TEST_CASE("waiting with something else to do: what that throws is not the request's failure") {
  std::latch asked(1);
  on_ranks(2, [&](Communicator& c) {
    std::vector<std::int32_t> x(4, c.rank());
    if (c.rank() == 1) {
      asked.wait();
      return c.send(x, 0);
    }
    Request request = c.start_recv(std::span(x), 1);
    CHECK_THROWS_WITH_AS(wait(request,
                              [&] {
                                asked.count_down();
                                while (!request.done()) c.progress();
                                throw std::runtime_error("elsewhere");
                              }),
                         "elsewhere", std::runtime_error);
    request.wait();
    CHECK(x == std::vector<std::int32_t>(4, 1));
  });
}

TEST_CASE("a request that is refused while a call uses its communicator has not failed") {
  on_ranks(2, [](Communicator& c) {
    struct Ended {
      Request by_wait, by_test;
    } ended{c.start_barrier(), c.start_barrier()};
    while (!ended.by_wait.done() || !ended.by_test.done()) c.progress();
    const Op asks = Op::user(
        [](void* into, const void*, const void*, std::size_t, void* context) {
          Ended& ended = *static_cast<Ended*>(context);
          CHECK(error_of([&] { ended.by_wait.wait(); }).code == ErrorCode::invalid_argument);
          CHECK(error_of([&] { ended.by_test.test(); }).code == ErrorCode::invalid_argument);
          CHECK(error_of([&] { wait(ended.by_test, [] {}); }).code == ErrorCode::invalid_argument);
          *static_cast<float*>(into) = 5;
        },
        &ended, true, "asks");
    std::vector<float> x(1);
    c.all_reduce(x, asks, {"recursive_doubling", 0});
    CHECK(x[0] == 5);
    ended.by_wait.wait();
    CHECK(ended.by_test.test());
  });
}
