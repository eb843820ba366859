#include "sides.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace baton::cli::measure {
namespace {

Side side_of(World& world, std::string name, std::function<void()> run) {
  Side side;
  side.name = std::move(name);
  side.run = run;
  side.seconds = [&world, run = std::move(run)](int calls) { return timed(world, run, calls); };
  return side;
}

}  // namespace

double timed(World& world, const std::function<void()>& call, int calls) {
  double seconds = 0;
  world.barrier();
  world.together([&] {
    const double begin = now();
    for (int i = 0; i < calls; ++i) call();
    seconds = now() - begin;
  });
  return world.max(seconds);
}

int calls_filling(const TimedCalls& timed_calls, double seconds) {
  timed_calls(1);  // first calls plan and connect
  constexpr double most = 1e7;
  double calls = 1;
  for (;;) {
    const double took = std::max(timed_calls(static_cast<int>(calls)), 1e-9);
    const double enough = std::clamp(std::ceil(calls * seconds / took), 1.0, most);
    // Few calls tell little: the clock and the start together are part of what they took.
    if (took >= seconds / 4 || enough <= calls) return static_cast<int>(enough);
    calls = std::min(enough, 16 * calls);
  }
}

void sample_alone(Timed& one, int warmup, int calls) {
  double once = 0;
  if (warmup > 0) once = one.seconds(warmup) / warmup;
  if (calls == 0) {
    if (warmup == 0) once = one.seconds(1);
    calls = static_cast<int>(std::clamp(0.1 / std::max(once, 1e-9), 2.0, 1000.0));
  }
  one.calls = calls;
  one.sample();
}

void sample_in_turn(std::vector<Timed*> all, int rounds, const std::function<void()>& before) {
  for (int round = 0; round < rounds; ++round) {
    before();
    for (Timed* one : all) one->sample();
    std::ranges::reverse(all);
  }
}

Side own_side(World& world, CaseRunner& runner, const Choice& choice) {
  Side side = side_of(world, "baton", [&runner, choice] { runner.run(choice); });
  side.ours = true;
  world.together([&] {
    const Choice chosen = runner.chosen(choice);
    side.algorithm = chosen.algorithm;
    side.segment = chosen.segment.value_or(0);
  });
  return side;
}

std::vector<Side> built_in_sides(World& world, const Case& subject, CaseBuffers& buffers,
                                 Entry entry) {
  std::vector<Side> sides;
  for (BuiltIn& one : world.built_ins(subject, buffers.input(), buffers.output(), entry)) {
    const bool ours = entry == Entry::program;  // which a drop-in has taken over
    Side side = side_of(world, (ours ? "drop-in " : "") + one.name, std::move(one.run));
    side.function = std::move(one.name);
    side.ours = ours;
    sides.push_back(std::move(side));
  }
  return sides;
}

}  // namespace baton::cli::measure
