#include "contest.hpp"

#include <algorithm>

#include "clock.hpp"
#include "sample.hpp"
#include "trial.hpp"

namespace baton::cli {

std::vector<Comparison> comparisons_of(const std::vector<Contestant>& sides) {
  std::vector<Comparison> comparisons;
  for (std::size_t ours = 0; ours < sides.size(); ++ours) {
    if (!sides[ours].ours) continue;
    for (std::size_t theirs = 0; theirs < sides.size(); ++theirs) {
      const std::string& function = sides[ours].function;
      if (sides[theirs].ours || (!function.empty() && function != sides[theirs].function)) continue;
      std::vector<double> ratios;
      for (std::size_t round = 0; round < sides[ours].seconds.size(); ++round) {
        ratios.push_back(sides[theirs].seconds[round] / sides[ours].seconds[round]);
      }
      comparisons.push_back({ours, theirs, median_interval(std::move(ratios))});
    }
  }
  return comparisons;
}

Contest contest(World& world, Communicator& communicator, const Exercise& exercise,
                const std::vector<Rings::Probe>& probes, const ContestOptions& options,
                const std::function<void()>& before) {
  std::optional<Trial> trial;
  world.together([&] { trial.emplace(communicator, exercise, false); });
  Contest contest;
  std::vector<std::function<void()>> runs;
  const auto add = [&](Contestant side, std::function<void()> run) {
    contest.sides.push_back(std::move(side));
    runs.push_back(std::move(run));
  };
  if (options.through != Through::drop_in) {
    Contestant side{"baton", "", true, {}, {}, {}, {}};
    world.together([&] {
      const Choice chosen = trial->chosen(options.choice);
      side.algorithm = chosen.algorithm;
      side.segment = std::max<std::int64_t>(chosen.segment, 0);
    });
    add(side, [&] { trial->run(options.choice); });
  }
  if (options.through != Through::api) {
    for (BuiltIn& one :
         world.built_ins(exercise, trial->input(), trial->output(), Entry::program)) {
      add({"drop-in " + one.name, one.name, true, {}, {}, {}, {}}, std::move(one.run));
    }
  }
  for (BuiltIn& one : world.built_ins(exercise, trial->input(), trial->output(), Entry::library)) {
    add({one.name, one.name, false, {}, {}, {}, {}}, std::move(one.run));
  }

  Checker checker(world, exercise, *trial);
  const Reference reference = checker.reference(checker.fills()[0]);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Contestant& side = contest.sides[i];
    if (side.ours) checker.check(side.verdict, runs[i], reference);
    contest.repeats = std::max(contest.repeats, repeats_for(world, runs[i], options.seconds));
  }
  std::vector<int> repeats(runs.size(), contest.repeats);
  for (const Rings::Probe& probe : probes) {
    runs.push_back(probe.run);
    repeats.push_back(repeats_for(world, probe.run, options.seconds));
  }
  const int rounds = exercise.asked >= options.large ? options.large_pairs : options.pairs;
  std::size_t samples = 0;
  auto all = alternate(runs.size(), rounds, [&](std::size_t i) {
    if (samples++ % runs.size() == 0) before();
    return timed(world, runs[i], repeats[i]) / repeats[i];
  });
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i < contest.sides.size()) {
      contest.sides[i].seconds = std::move(all[i]);
    } else {
      const Rings::Probe& probe = probes[i - contest.sides.size()];
      for (double& seconds : all[i]) seconds /= probe.messages;
      contest.exchanges.push_back({probe.across, {probe.bytes, std::move(all[i])}});
    }
  }
  contest.comparisons = comparisons_of(contest.sides);
  return contest;
}

}  // namespace baton::cli
