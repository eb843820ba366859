// Ranks as threads that do one piece of work after another.

#include "cli/bench_device/device_side.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <string>

#include "baton/error.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace baton::cli;
using namespace baton::cli::bench_device;

TEST_CASE("all ranks do each piece of work, and it is done when run() returns") {
  for (const int ranks : {1, 2, 7}) {
    ThreadPool pool(ranks, {});
    std::atomic<int> sum = 0;
    for (int round = 1; round <= 100; ++round) {
      pool.run([&](World& world) {
        sum += static_cast<int>(world.sum(world.rank() + 1));
        CHECK(world.size() == ranks);
      });
      CHECK(sum == round * ranks * ranks * (ranks + 1) / 2);
    }
  }
}

TEST_CASE("what one rank throws is thrown on, and the ranks go on") {
  ThreadPool pool(3, {});
  const auto fails = [&] {
    pool.run([](World& world) {
      if (world.rank() == 1) throw Error(ErrorCode::device, "expected a device, found a rank");
    });
  };
  for (int round = 0; round < 3; ++round) {
    CHECK(support::error_of(fails).code == ErrorCode::device);
    std::int64_t sum = 0;
    pool.run([&](World& world) {
      const std::int64_t found = world.sum(1);
      if (world.rank() == 0) sum = found;
    });
    CHECK(sum == 3);
  }
}

TEST_CASE("threads that cannot be started are an error of what is to be run") {
  ThreadPool pool(3, {.hosts = {0, 0}});
  for (int round = 0; round < 2; ++round)
    CHECK(support::error_of([&] { pool.run([](World&) {}); }).code == ErrorCode::invalid_argument);
}
