#include "transformer/pipeline/schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "baton/error.hpp"
#include "transformer/pipeline/steps.hpp"
#include "transformer/pipeline/verify.hpp"

using namespace baton;
using namespace baton::transformer;

namespace {

std::string text(const char* algorithm, int ranks, int micro_batches, int stages_per_rank = 1) {
  return print(pipeline_schedule(algorithm, {ranks, micro_batches, stages_per_rank}));
}

}  // namespace

TEST_CASE("schedules are those of their papers") {
  CHECK(text("naive", 2, 2) == "0F0,,,,0B0,,0F1,,,,0B1\n,1F0,1B0,,,,,1F1,1B1\n");
  CHECK(text("gpipe", 2, 3) == "0F0,0F1,0F2,,,,0B0,,0B1,,0B2\n,1F0,1F1,1F2,1B0,,1B1,,1B2\n");
  CHECK(text("1f1b", 2, 3) == "0F0,0F1,,,0B0,,0F2,0B1,,,0B2\n,1F0,1B0,,1F1,1B1,,1F2,1B2\n");
  // Megatron-LM's figure 4, below: two ranks have stages 0, 2 and 1, 3.
  CHECK(text("interleaved_1f1b", 2, 2, 2) ==
        "0F0,0F1,2F0,2F1,,,2B0,,,2B1,,0B0,,0B1\n,1F0,1F1,3F0,3B0,,3F1,3B1,,1B0,,1B1\n");
  CHECK(text("zb_h1", 2, 2) == "0F0,0F1,,0I0,0W0,0I1,0W1\n,1F0,1I0,1F1,1I1,1W0,1W1\n");
}

TEST_CASE("clock cycles pair micro-batch i with partition j at clock i + j") {
  for (const int m : {1, 2, 3, 8}) {
    for (const int p : {1, 2, 3, 5}) {
      const auto clocks = clock_cycles(m, p);
      CHECK(clocks.size() == static_cast<std::size_t>(m + p - 1));
      std::set<std::pair<int, int>> seen;
      for (std::size_t k = 0; k < clocks.size(); ++k) {
        for (const auto& [i, j] : clocks[k]) {
          CHECK(i + j == static_cast<int>(k));
          CHECK((i >= 0 && i < m && j >= 0 && j < p));
          seen.emplace(i, j);
        }
      }
      CHECK(seen.size() == static_cast<std::size_t>(m * p));
    }
  }
  CHECK_THROWS_WITH_AS(clock_cycles(0, 2),
                       "clock_cycles: expected at least one micro-batch and one partition, found 0 "
                       "and 2",
                       Error);
}

TEST_CASE("GPipe's forward is the clock cycles") {
  for (const int m : {1, 3, 8}) {
    for (const int p : {1, 2, 5}) {
      const PipelineSchedule schedule = pipeline_schedule("gpipe", {p, m, 1});
      const PipelineTimes times = unit_times(schedule);
      const auto clocks = clock_cycles(m, p);
      for (int rank = 0; rank < p; ++rank) {
        for (int i = 0; i < m; ++i) {
          const auto clock =
              times.start[static_cast<std::size_t>(rank)][static_cast<std::size_t>(i)];
          const auto& pairs = clocks.at(static_cast<std::size_t>(clock));
          CHECK(std::count(pairs.begin(), pairs.end(), std::pair(i, rank)) == 1);
        }
      }
    }
  }
}

TEST_CASE("a problem that an algorithm does not serve is refused") {
  const auto refused = [](const char* algorithm, PipelineProblem problem, const char* sentence) {
    CHECK_THROWS_WITH_AS(pipeline_schedule(algorithm, problem), sentence, Error);
    CHECK(refusal(pipeline_algorithm(algorithm), problem) == sentence);
  };
  refused("gpipe", {0, 1, 1}, "pipeline gpipe: expected at least one rank, found 0");
  refused("gpipe", {1, -1, 1}, "pipeline gpipe: expected at least one micro-batch, found -1");
  refused("gpipe", {1, 1, 0}, "pipeline gpipe: expected at least one stage per rank, found 0");
  refused("zb_h1", {2, 2, 2}, "pipeline zb_h1: expected one stage per rank, found 2");
  refused("interleaved_1f1b", {4, 6, 2},
          "pipeline interleaved_1f1b: expected a multiple of 4 micro-batches, the number of ranks, "
          "found 6");
  CHECK_THROWS_WITH_AS(
      pipeline_algorithm("chimera"),
      "pipeline: expected naive, gpipe, 1f1b, interleaved_1f1b, zb_h1, found \"chimera\"", Error);
}

TEST_CASE("the text form is read back") {
  for (const PipelineAlgorithm& algorithm : pipeline_algorithms()) {
    for (const int ranks : {1, 2, 3, 4}) {
      const PipelineProblem problem{ranks, 12, algorithm.refuses ? 2 : 1};
      const PipelineSchedule schedule = algorithm.generate(problem);
      PipelineSchedule again = parse_pipeline(print(schedule), algorithm.name);
      CHECK(again == schedule);
      again.ranks[0].pop_back();
      CHECK_FALSE(again == schedule);
    }
  }
  // Blanks, empty cells and both ends of a line are free.
  const PipelineSchedule loose = parse_pipeline(" 0F0 ,, 0I0,0W0\r\n1F0,1B0", "loose.csv");
  CHECK(print(loose) == "0F0,,,,0I0,0W0\n,1F0,1B0\n");
}

TEST_CASE("a wrong cell is refused with line and cell") {
  const auto refused = [](const char* csv, const char* sentence) {
    CHECK_THROWS_WITH_AS(parse_pipeline(csv, "my.csv"), sentence, Error);
  };
  refused("", "my.csv: expected a line of actions for each rank, 0F0,0B0 for example, found none");
  refused("\n,,\n",
          "my.csv: expected a line of actions for each rank, 0F0,0B0 for example, found none");
  refused("0F0,0B0\n1F0,1X0",
          "my.csv: line 2, cell 2: expected F, B, I or W behind the number of the stage, found "
          "\"1X0\"");
  refused("0F0,0B",
          "my.csv: line 1, cell 2: expected stage, one of F, B, I, W, and micro-batch, "
          "each number below 1048576, found \"0B\"");
  refused("F0",
          "my.csv: line 1, cell 1: expected stage, one of F, B, I, W, and micro-batch, each "
          "number below 1048576, found \"F0\"");
  refused("-1F0",
          "my.csv: line 1, cell 1: expected stage, one of F, B, I, W, and micro-batch, "
          "each number below 1048576, found \"-1F0\"");
  refused("0F1048576",
          "my.csv: line 1, cell 1: expected stage, one of F, B, I, W, and "
          "micro-batch, each number below 1048576, found \"0F1048576\"");
  refused("0F99999999999999999999",
          "my.csv: line 1, cell 1: expected stage, one of F, B, I, W, and micro-batch, each number "
          "below 1048576, found \"0F99999999999999999999\"");
  refused("0F0x",
          "my.csv: line 1, cell 1: expected nothing behind the number of the micro-batch, "
          "found \"0F0x\"");
}

TEST_CASE("steps receive before they need and send as soon as they have") {
  const PipelineSchedule schedule = pipeline_schedule("1f1b", {2, 2, 1});
  std::string text;
  for (const PipelineStep& step : steps_of(schedule, 0)) {
    const char* const kind[] = {"", " > ", " < "};
    text += kind[static_cast<std::size_t>(step.kind)] + print(step.action) + " ";
  }
  CHECK(text == "0F0  > 0F0 0F1  > 0F1  < 1B0 0B0  < 1B1 0B1 ");
}
