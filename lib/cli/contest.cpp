#include "contest.hpp"

#include <algorithm>

#include "clock.hpp"
#include "device_trial.hpp"
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

Contest in_turn(World& world, std::vector<Side> sides, const std::vector<Rings::Probe>& probes,
                const Exercise& exercise, const ContestOptions& options,
                const std::function<void()>& before) {
  Contest contest;
  for (const Side& side : sides) {
    const int calls = repeats_for(
        world, [&] { side.calls(1); }, options.seconds);
    contest.repeats = std::max(contest.repeats, calls);
  }
  std::vector<int> repeats;  // of the probes
  for (const Rings::Probe& probe : probes) {
    repeats.push_back(repeats_for(world, probe.run, options.seconds));
  }
  const std::size_t turns = sides.size() + probes.size();
  const int rounds = exercise.asked >= options.large ? options.large_pairs : options.pairs;
  std::size_t samples = 0;
  auto all = alternate(turns, rounds, [&](std::size_t i) {
    if (samples++ % turns == 0) before();
    if (i < sides.size()) {
      const auto calls = [&] { sides[i].calls(contest.repeats); };
      return timed(world, calls, 1) / contest.repeats;
    }
    const std::size_t probe = i - sides.size();
    return timed(world, probes[probe].run, repeats[probe]) / repeats[probe];
  });
  for (std::size_t i = 0; i < turns; ++i) {
    if (i < sides.size()) {
      sides[i].contestant.seconds = std::move(all[i]);
      contest.sides.push_back(std::move(sides[i].contestant));
    } else {
      const Rings::Probe& probe = probes[i - sides.size()];
      for (double& seconds : all[i]) seconds /= probe.messages;
      contest.exchanges.push_back({probe.across, {probe.bytes, std::move(all[i])}});
    }
  }
  contest.comparisons = comparisons_of(contest.sides);
  return contest;
}

Contest contest(World& world, Communicator& communicator, const Exercise& exercise,
                const std::vector<Rings::Probe>& probes, const ContestOptions& options,
                const std::function<void()>& before) {
  std::optional<Trial> trial;
  world.together([&] { trial.emplace(communicator, exercise, false); });
  std::vector<Side> sides;
  const auto add = [&](Contestant side, const std::function<void()>& run) {
    sides.push_back({std::move(side), [run](int calls) {
                       for (int i = 0; i < calls; ++i) run();
                     }});
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
    for (const BuiltIn& one :
         world.built_ins(exercise, trial->input(), trial->output(), Entry::program)) {
      add({"drop-in " + one.name, one.name, true, {}, {}, {}, {}}, one.run);
    }
  }
  for (const BuiltIn& one :
       world.built_ins(exercise, trial->input(), trial->output(), Entry::library)) {
    add({one.name, one.name, false, {}, {}, {}, {}}, one.run);
  }

  Checker checker(world, exercise, *trial);
  const Reference reference = checker.reference(checker.fills()[0]);
  for (Side& side : sides) {
    if (!side.contestant.ours) continue;
    checker.check(
        side.contestant.verdict, [&] { side.calls(1); }, reference);
  }
  return in_turn(world, std::move(sides), probes, exercise, options, before);
}

Contest device_contest(World& world, StreamCommunicator& communicator, const Card& card,
                       const Exercise& exercise, const ContestOptions& options,
                       const std::function<void()>& before) {
  std::optional<DeviceTrial> trial;
  Contestant side{"baton", "", true, {}, {}, {}, {}};
  world.together([&] {
    trial.emplace(communicator, card, exercise);
    const Choice chosen = trial->chosen(options.choice);
    side.algorithm = chosen.algorithm;
    side.segment = std::max<std::int64_t>(chosen.segment, 0);
  });
  Checker checker(world, exercise, *trial);
  const auto run = [&] {
    trial->upload();
    trial->run(options.choice, 1);
    trial->download();
  };
  for (const Fill fill : checker.fills()) {
    checker.check(side.verdict, run, checker.reference(fill));
  }
  Contest contest =
      in_turn(world, {{std::move(side), [&](int calls) { trial->run(options.choice, calls); }}}, {},
              exercise, options, before);
  world.together([&] { trial->download(); });
  checker.recheck(contest.sides[0].verdict);
  return contest;
}

}  // namespace baton::cli
