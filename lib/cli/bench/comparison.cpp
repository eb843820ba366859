#include "comparison.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace baton::cli::bench {

std::vector<Ratio> ratios_of(const std::vector<Side>& sides) {
  std::vector<Ratio> all;
  for (std::size_t ours = 0; ours < sides.size(); ++ours) {
    if (!sides[ours].ours) continue;
    for (std::size_t theirs = 0; theirs < sides.size(); ++theirs) {
      const std::string& function = sides[ours].function;
      if (sides[theirs].ours || (!function.empty() && function != sides[theirs].function)) continue;
      std::vector<double> ratios;
      for (std::size_t round = 0; round < sides[ours].samples.size(); ++round) {
        ratios.push_back(sides[theirs].samples[round] / sides[ours].samples[round]);
      }
      all.push_back({ours, theirs, median_interval(std::move(ratios))});
    }
  }
  return all;
}

Comparison compare(std::vector<Side> sides, std::vector<Exchange> probes, const Case& subject,
                   const ComparisonOptions& options, const std::function<void()>& before) {
  Comparison found;
  std::vector<measure::Timed*> all;
  for (Side& side : sides) {
    side.calls = measure::calls_filling(side.seconds, options.seconds);
    found.calls = std::max(found.calls, side.calls);
    all.push_back(&side);
  }
  if (options.equal_calls) {
    for (Side& side : sides) side.calls = found.calls;
  }
  for (Exchange& probe : probes) {
    probe.calls = measure::calls_filling(probe.seconds, options.seconds);
    all.push_back(&probe);
  }
  const int rounds = subject.asked >= options.large ? options.large_pairs : options.pairs;
  measure::sample_in_turn(all, rounds, before);

  // The objects that run them may be gone when the samples are read.
  for (Side& side : sides) side.run = nullptr, side.seconds = nullptr;
  for (Exchange& probe : probes) probe.seconds = nullptr;
  found.sides = std::move(sides);
  found.exchanges = std::move(probes);
  found.ratios = ratios_of(found.sides);
  return found;
}

Comparison compare_case(World& world, Communicator& communicator, const Case& subject,
                        std::vector<Exchange> probes, const ComparisonOptions& options,
                        const std::function<void()>& before) {
  std::optional<measure::CaseRunner> runner;
  world.together([&] { runner.emplace(communicator, subject, false); });
  std::vector<Side> sides;
  const auto add = [&](std::vector<Side> more) {
    std::move(more.begin(), more.end(), std::back_inserter(sides));
  };
  if (options.api) {
    sides.push_back(own_side(world, *runner, options.choice));
  }
  if (options.drop_in) {
    add(built_in_sides(world, subject, *runner, Entry::program));
  }
  add(built_in_sides(world, subject, *runner, Entry::library));

  measure::Checker checker(world, subject, *runner);
  const measure::Reference reference = checker.reference(checker.fills()[0]);
  for (Side& side : sides) {
    if (side.ours) checker.check(side.check, side.run, reference);
  }
  return compare(std::move(sides), std::move(probes), subject, options, before);
}

}  // namespace baton::cli::bench
