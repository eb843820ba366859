// The sizes, schedules and algorithms that the options of a command line name.

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cli/common/collective_options.hpp"
#include "cli/simulate/simulation.hpp"
#include "cli/tune/algorithms.hpp"
#include "support/cores.hpp"

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

TEST_CASE("simulate: the algorithm that a communicator chooses for the segment") {
  for (const std::int64_t bytes : {64, 64 << 10, 4 << 20}) {
    for (const char* segment : {"", "0", "16K", "512K"}) {
      simulate::SimulateCommand command;
      command.data = {.collective = "broadcast", .segment = segment, .ranks = 4};
      const simulate::Setting setting(command);
      const Case subject = setting.subject(Collective::broadcast, 4, bytes);
      const std::string predicted = setting.algorithms(subject.problem).front()->name;
      CAPTURE(bytes);
      CAPTURE(segment);
      support::on_ranks_of_cores(4, 0, [&](Communicator& world) {
        std::vector<float> data(static_cast<std::size_t>(bytes) / sizeof(float));
        Call call = calls::broadcast(data, 0);
        call.choice.segment = setting.segment;
        CHECK(world.chosen(call).algorithm == predicted);
      });
    }
  }
}

TEST_CASE("tune: every algorithm has a candidate, however small the data") {
  const Registry registry = Registry::builtin();
  const Algorithm& whole = registry.find(Collective::broadcast, "binomial");
  const Algorithm& pipelined = registry.find(Collective::broadcast, "circulant");
  REQUIRE(pipelined.pipelined);
  using Segments = std::vector<std::int64_t>;
  for (const std::int64_t bytes : {0, 4, 8 << 10}) {
    CHECK(tune::segments_of(whole, bytes) == Segments{0});
    CHECK(tune::segments_of(pipelined, bytes) == Segments{8 << 10});
  }
  CHECK(tune::segments_of(whole, (16 << 10) + 1) == Segments{0, 8 << 10, 16 << 10});
  CHECK(tune::segments_of(pipelined, (16 << 10) + 1) == Segments{8 << 10, 16 << 10});
}
