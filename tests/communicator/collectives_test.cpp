#include <doctest/doctest.h>

#include "support/conformance.hpp"
#include "support/ranks.hpp"
#include "support/sanitizer.hpp"

using namespace baton;
using namespace support;

namespace {

const auto sizes =
    support::under_sanitizer ? std::vector{1, 2, 3, 4, 5} : std::vector{1, 2, 3, 4, 5, 6, 7, 8, 16};

}  // namespace

TEST_CASE("broadcast, reduce, gather and scatter: every algorithm, count and root") {
  for (const int size : sizes) {
    on_ranks(size, [&](Communicator& c) { conformance::rooted(c, thorough(size)); });
  }
}

TEST_CASE("all_reduce, reduce_scatter, scan and exscan: every algorithm and count") {
  for (const int size : sizes) {
    on_ranks(size, [&](Communicator& c) { conformance::reductions(c, thorough(size)); });
  }
}

TEST_CASE("all_gather and all_to_all: every algorithm and count") {
  for (const int size : sizes) {
    on_ranks(size, [&](Communicator& c) { conformance::exchanges(c, thorough(size)); });
  }
}

TEST_CASE("barrier: nobody leaves before all have come") {
  for (const int size : sizes) on_ranks(size, conformance::barriers);
}

TEST_CASE("a million elements") {
  constexpr std::int64_t n = 1'000'000;
  using Ints = std::vector<std::int32_t>;
  const auto of = [](int rank, std::int64_t i) {
    return static_cast<std::int32_t>(i % 1009) * (rank + 1);
  };
  on_ranks(3, [&](Communicator& c) {
    Ints input(n), output(n), expected(n);
    for (std::int64_t i = 0; i < n; ++i) {
      input[static_cast<std::size_t>(i)] = of(c.rank(), i);
      expected[static_cast<std::size_t>(i)] = 6 * of(0, i);
    }
    for (const char* algorithm : {"", "ring", "circulant", "rabenseifner", "double_tree"}) {
      for (const std::int64_t segment : {0, 128 << 10}) {
        std::fill(output.begin(), output.end(), -1);
        c.all_reduce(input, output, sum, {algorithm, segment});
        CHECK(output == expected);
      }
    }
    const Ints chunk(expected.begin(), expected.begin() + n / 3);
    for (const char* algorithm : {"ring", "recursive_halving", "circulant"}) {
      Ints wide(3 * chunk.size()), part(chunk.size());
      for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = input[i % chunk.size()];
      c.reduce_scatter(wide, part, sum, {algorithm, 128 << 10});
      CHECK(part == chunk);
    }
    for (const char* algorithm : {"chain", "circulant", "scatter_ring"}) {
      output = c.rank() == 2 ? expected : Ints(n);
      c.broadcast(output, 2, {algorithm, 32 << 10});
      CHECK(output == expected);
    }
    Ints all(3 * n);
    c.all_gather(input, all);
    bool good = true;
    for (std::int64_t i = 0; i < 3 * n; ++i) {
      good = good && all[static_cast<std::size_t>(i)] == of(static_cast<int>(i / n), i % n);
    }
    CHECK(good);
  });
}

TEST_CASE("wider and narrower windows") {
  for (const int window : {1, 3, 32}) {
    Options options = test_options();
    options.window = window;
    for (const int size : {3, 5}) {
      on_ranks(
          size,
          [&](Communicator& c) {
            conformance::rooted(c, brief(size));
            conformance::reductions(c, brief(size));
            conformance::exchanges(c, brief(size));
          },
          options);
    }
  }
}

TEST_CASE("delays, and sends that wait for their receives") {
  for (const int size : {2, 5}) {
    const ThreadOptions delayed{.seed = 17, .eager_bytes = size == 2 ? 0u : 64u};
    on_ranks(
        size,
        [&](Communicator& c) {
          conformance::rooted(c, brief(size));
          conformance::reductions(c, brief(size));
          conformance::exchanges(c, brief(size));
        },
        test_options(), delayed);
  }
}

TEST_CASE("ranks on several hosts, in any order") {
  for (const char* text : {"2x2", "0,1,0,1,0,1", "0,1,1,0,2", "0,0,0,1"}) {
    const Hosts hosts = parse_hosts(text);
    ThreadOptions threads;
    threads.hosts.assign(hosts.of().begin(), hosts.of().end());
    on_ranks(
        hosts.size(),
        [&](Communicator& c) {
          REQUIRE(c.hosts());
          CHECK(*c.hosts() == hosts);
          conformance::rooted(c, brief(c.size()));
          conformance::reductions(c, brief(c.size()));
          conformance::exchanges(c, brief(c.size()));
          conformance::barriers(c);
          const Communicator host = c.split(hosts.of(c.rank()));
          CHECK(!host.hosts());
          const Communicator reverse = c.split(0, -c.rank());
          CHECK(reverse.hosts()->of(0) == 0);
          CHECK(reverse.hosts()->count() == hosts.count());
        },
        test_options(), threads);
  }
}
