// The sizes and schedules that the options of a command line name.

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "cli/common/collective_options.hpp"

using namespace baton;
using namespace baton::cli;

TEST_CASE("sizes: ranges end where the next size would be larger, up to the largest number") {
  constexpr std::int64_t large = std::int64_t{1} << 62;
  const auto sizes = [](const char* bytes, int factor) {
    return CollectiveOptions{.bytes = bytes}.sizes(factor);
  };
  CHECK(sizes("8:100", 3) == std::vector<std::int64_t>{8, 24, 72});
  CHECK(sizes("8:72", 3) == std::vector<std::int64_t>{8, 24, 72});
  CHECK(sizes("4611686018427387904", 2) == std::vector{large});
  const auto doubled = sizes("1:4611686018427387904", 2);
  CHECK(doubled.size() == 63);
  CHECK(doubled.back() == large);
  CHECK(sizes("3:4611686018427387904", 2).back() == 3 * (large / 4));
  CHECK(sizes("1:4611686018427387904", 1 << 20).back() == std::int64_t{1} << 60);
}

TEST_CASE("schedules: a pipelined algorithm has at most 2^20 blocks") {
  ScheduleRequest request;
  request.data = {.collective = "broadcast",
                  .algorithm = "circulant",
                  .ranks = 2,
                  .count = std::int64_t{1} << 32};
  request.segment = 1;
  for (const Schedule& schedule : schedules_of(request)) CHECK(schedule.steps().size() == 1 << 20);
}
