#include "transformer/pipeline/program.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "baton/schedule/text.hpp"
#include "baton/simulate.hpp"
#include "baton/verify.hpp"
#include "transformer/pipeline/verify.hpp"

using namespace baton;
using namespace baton::transformer;

namespace {

/// Unit costs of 1 µs, messages of 8 elements.
PipelineLoad unit_load() {
  return {[](const PipelineAction& action) { return 1000 * units(action.work); },
          [](const PipelineAction&) { return 8; }};
}

std::shared_ptr<const std::vector<Schedule>> programs(const PipelineSchedule& schedule) {
  return std::make_shared<const std::vector<Schedule>>(programs_of(schedule, unit_load()));
}

/// use(algorithm, problem) for the problems that each algorithm serves.
template <class Use>
void for_the_grid(Use use) {
  for (const PipelineAlgorithm& algorithm : pipeline_algorithms()) {
    for (const int p : {1, 2, 3, 4, 5, 7, 8}) {
      for (const int m : {1, 2, 3, 4, 6, 8}) {
        for (const int v : {1, 2, 3}) {
          const PipelineProblem problem{p, m, v};
          if (refusal(algorithm, problem).empty()) use(algorithm, problem);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("programs of pipelines are right, and take the documented time without messages'") {
  for_the_grid([](const PipelineAlgorithm& algorithm, const PipelineProblem& problem) {
    CAPTURE(algorithm.name);
    CAPTURE(problem.ranks);
    CAPTURE(problem.micro_batches);
    CAPTURE(problem.stages_per_rank);
    const PipelineSchedule schedule = pipeline_schedule(algorithm.name, problem);
    const auto all = programs(schedule);
    const Proof proof = baton::verify(*all, problems_of(*all));
    CHECK(proof.holds());
    CHECK(proof.messages == algorithm.cost(problem).messages);
    const Prediction prediction = simulate(all, 1, Network{});
    CHECK(prediction.total == 1000 * unit_times(schedule).span);
    std::int64_t busy = 0;
    for (const Schedule& program : *all) busy += program.computed();
    const double bubble =
        1 - static_cast<double>(busy) / (static_cast<double>(prediction.total) * problem.ranks);
    CHECK(bubble == doctest::Approx(algorithm.cost(problem).bubble));
  });
}

TEST_CASE("programs of pipelines are printed and read back") {
  for_the_grid([](const PipelineAlgorithm& algorithm, const PipelineProblem& problem) {
    const auto all = programs(pipeline_schedule(algorithm.name, problem));
    for (const Schedule& program : *all) CHECK(parse(print(program))[0] == program);
  });
}

TEST_CASE("steps of a program by hand") {
  const auto all = programs(pipeline_schedule("gpipe", {2, 1, 1}));
  std::vector<std::string> steps;
  for (const Schedule& program : *all) {
    for (std::size_t i = 0; i < program.steps().size(); ++i) steps.push_back(print(program, i));
  }
  CHECK(steps == std::vector<std::string>{
                     "compute 1000 forward 0F0 writes scratch[0:8]", "send scratch[0:8] to 1",
                     "recv scratch[8:8] from 1", "compute 2000 backward 0B0 reads scratch[8:8]",
                     "recv scratch[0:8] from 0", "compute 1000 forward 1F0 reads scratch[0:8]",
                     "compute 2000 backward 1B0 writes scratch[8:8]", "send scratch[8:8] to 0"});
}

TEST_CASE("messages delay a pipeline by what they take") {
  Network network;
  network.within.latency = 100;
  network.across = network.within;
  // Two stages, one micro-batch: there and back.
  CHECK(simulate(programs(pipeline_schedule("gpipe", {2, 1, 1})), 1, network).total == 6200);
}
