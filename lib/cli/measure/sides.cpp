#include "sides.hpp"

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
