#include "measure.hpp"

#include <algorithm>
#include <optional>

#include "checker.hpp"
#include "clock.hpp"
#include "trial.hpp"

namespace baton::cli {
namespace {

/// Everything about one exercise; see measure().
class Measurement {
 public:
  Measurement(World& world, Communicator& communicator, const Exercise& exercise,
              const MeasureOptions& options)
      : world_(world), exercise_(exercise), options_(options) {
    world_.together([&] { trial_.emplace(communicator, exercise, options.in_place); });
  }

  MeasuredAll all(const std::vector<std::string>& names,
                  const std::function<void(const std::string&)>& before) {
    MeasuredAll all;
    for (const std::string& name : names) {
      const Choice wanted{name, options_.segment};
      Measured one;
      world_.together([&] {
        const Choice chosen = trial_->chosen(wanted);
        one.algorithm = chosen.algorithm;
        one.segment = chosen.segment.value_or(0);
      });
      all.algorithms.push_back(one);
    }
    Checker checker(world_, exercise_, *trial_);
    for (const Fill fill : checker.fills()) {
      const Reference reference = checker.reference(fill);
      for (std::size_t i = 0; i < names.size(); ++i) {
        before(all.algorithms[i].algorithm);
        const Choice choice{names[i], options_.segment};
        checker.check(
            all.algorithms[i].verdict, [&] { trial_->run(choice); }, reference);
      }
    }
    if (const auto built_ins = world_.built_ins(exercise_, trial_->input(), trial_->output());
        !built_ins.empty()) {
      int iterations = 0;
      all.built_in_seconds = time(built_ins[0].run, iterations);
    }
    const bool in_place = world_.sum(trial_->aliased() ? 1 : 0) > 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      Measured& one = all.algorithms[i];
      const Choice choice{names[i], options_.segment};
      before(one.algorithm);
      world_.together([&] { trial_->reset(); });
      one.seconds = time([&] { trial_->run(choice); }, one.iterations);
      // In place, on all ranks or at the root, each run began with the result of the last.
      if (!in_place) checker.recheck(one.verdict);
    }
    return all;
  }

 private:
  double time(const std::function<void()>& run, int& iterations) {
    double one = 0;
    if (options_.warmup > 0) one = timed(world_, run, options_.warmup) / options_.warmup;
    iterations = options_.iterations;
    if (iterations == 0) {
      if (options_.warmup == 0) one = timed(world_, run, 1);
      iterations = static_cast<int>(std::clamp(0.1 / std::max(one, 1e-9), 2.0, 1000.0));
    }
    return timed(world_, run, iterations) / iterations;
  }

  World& world_;
  const Exercise& exercise_;
  const MeasureOptions& options_;
  std::optional<Trial> trial_;
};

}  // namespace

std::vector<std::string> algorithms_for(const Exercise& exercise, const Registry& registry,
                                        const std::string& wanted) {
  if (wanted.empty() || exercise.schedules) return {""};
  std::vector<std::string> names;
  for (const Algorithm* algorithm : registry.of(exercise.collective())) {
    if (wanted == "all" ? refusal(*algorithm, exercise.problem).empty()
                        : algorithm->name == wanted) {
      names.push_back(algorithm->name);
    }
  }
  return names;
}

MeasuredAll measure(World& world, Communicator& communicator, const Exercise& exercise,
                    const std::vector<std::string>& algorithms, const MeasureOptions& options,
                    const std::function<void(const std::string&)>& before) {
  return Measurement(world, communicator, exercise, options).all(algorithms, before);
}

}  // namespace baton::cli
