#include "measure.hpp"

#include <optional>
#include <utility>

namespace baton::cli::run {

using measure::Checker;
using measure::Side;

std::vector<std::string> algorithms_for(const Case& subject, const Registry& registry,
                                        const std::string& name) {
  if (name.empty() || subject.schedules) return {""};
  std::vector<std::string> names;
  for (const Algorithm* algorithm : registry.of(subject.collective())) {
    if (name == "all" ? refusal(*algorithm, subject.problem).empty() : algorithm->name == name) {
      names.push_back(algorithm->name);
    }
  }
  return names;
}

std::vector<Side> measure_case(World& world, Communicator& communicator, const Case& subject,
                               const std::vector<std::string>& algorithms,
                               const MeasureOptions& options,
                               const std::function<void(const std::string&)>& before) {
  std::optional<measure::CaseRunner> runner;
  world.together([&] { runner.emplace(communicator, subject, options.in_place); });
  std::vector<Side> sides;
  for (const std::string& name : algorithms) {
    sides.push_back(own_side(world, *runner, {name, options.segment}));
  }

  Checker checker(world, subject, *runner);
  for (const measure::Fill fill : checker.fills()) {
    const measure::Reference reference = checker.reference(fill);
    for (Side& side : sides) {
      before(side.algorithm);
      checker.check(side.check, side.run, reference);
    }
  }

  auto built_ins = built_in_sides(world, subject, *runner, Entry::library);
  if (!built_ins.empty()) sample_alone(built_ins[0], options.warmup, options.iterations);
  const bool in_place = world.sum(runner->aliased() ? 1 : 0) > 0;
  for (Side& side : sides) {
    before(side.algorithm);
    world.together([&] { runner->reset(); });
    sample_alone(side, options.warmup, options.iterations);
    // In place, on all ranks or at the root, each run began with the result of the last.
    if (!in_place) checker.recheck(side.check);
  }
  if (!built_ins.empty()) sides.push_back(std::move(built_ins[0]));
  for (Side& side : sides) side.run = nullptr, side.seconds = nullptr;  // they end with the runner
  return sides;
}

}  // namespace baton::cli::run
