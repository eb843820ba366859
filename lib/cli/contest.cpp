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

Contest in_turn(World& world, std::vector<Side> sides, const std::vector<Rings::Probe>& probes,
                const Exercise& exercise, const ContestOptions& options,
                const std::function<void()>& before) {
  Contest contest;
  for (Side& side : sides) {
    side.contestant.calls = repeats_for(side.seconds, options.seconds);
    contest.repeats = std::max(contest.repeats, side.contestant.calls);
  }
  if (options.equal_calls) {
    for (Side& side : sides) side.contestant.calls = contest.repeats;
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
      const int calls = sides[i].contestant.calls;
      return sides[i].seconds(calls) / calls;
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
  std::vector<std::function<void()>> runs;
  const auto add = [&](Contestant side, const std::function<void()>& run) {
    sides.push_back(
        {std::move(side), [&world, run](int calls) { return timed(world, run, calls); }});
    runs.push_back(run);
  };
  if (options.through != Through::drop_in) {
    Contestant side{"baton", "", true, {}, {}, {}, {}};
    world.together([&] {
      const Choice chosen = trial->chosen(options.choice);
      side.algorithm = chosen.algorithm;
      side.segment = chosen.segment.value_or(0);
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
  for (std::size_t i = 0; i < sides.size(); ++i) {
    Contestant& side = sides[i].contestant;
    if (side.ours) checker.check(side.verdict, runs[i], reference);
  }
  return in_turn(world, std::move(sides), probes, exercise, options, before);
}

}  // namespace baton::cli
