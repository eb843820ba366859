#include "fused_schedule.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../execute/plan.hpp"
#include "baton/error.hpp"
#include "baton/schedule/passes.hpp"

namespace baton::communicator {
namespace {

/// What rank `rank` has to do with the rank of `own`, as far as `own` tells: its ends of the
/// messages between the two, none of which waits for another.
Schedule other_ends(const Schedule& own, int rank) {
  Schedule::Header header = own.header();
  header.rank = rank;
  header.input = header.output = header.scratch = header.slots = 0;
  std::vector<Step> steps;
  std::vector<Region> regions;
  for (const Step& step : own.steps()) {
    if (!step.message() || step.peer != rank) continue;
    Step& end = steps.emplace_back();
    end.kind = step.kind == StepKind::send ? StepKind::recv : StepKind::send;
    end.lane = step.lane;
    end.peer = own.rank();
    end.first = static_cast<std::uint32_t>(regions.size());
    end.parts[0] = 1;
    regions.push_back(contiguous(Buffer::scratch, header.scratch, own.length(step)));
    header.scratch += own.length(step);
  }
  return Schedule(header, std::move(steps), std::move(regions));
}

/// In fused groups, where each rank knows its own counts alone. All ranks find the same fused
/// groups if no message waits for another; then there is one.
Schedule fused_alone(const Schedule& own, const std::string& algorithm) {
  Schedule schedule =
      fused([&](int rank) { return rank == own.rank() ? own : other_ends(own, rank); }, own.rank());
  const auto later = [](const Step& step) { return step.message() && step.round > 0; };
  if (std::ranges::any_of(schedule.steps(), later))
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: expected an algorithm whose messages do not wait for one another, "
                            "since ranks know their own counts alone; found {}",
                            name(own.collective()), algorithm));
  return schedule;
}

}  // namespace

Schedule fused_schedule(const Arguments& arguments, const selecting::Selection& selected,
                        const Problem& problem) {
  const Schedule own =
      execute::bound(selecting::scheduled(selected, problem, arguments.element_bytes),
                     arguments.input_sizes, arguments.output_sizes);
  if (arguments.counts_at_root ||
      (problem.collective == Collective::all_to_all && problem.uneven()))
    return fused_alone(own, selected.algorithm->name);
  // Whether others call in place is not known here; who does waits for more.
  Problem known = problem;
  known.in_place = known.input_rows == known.output_rows;
  if (!refusal(*selected.algorithm, known).empty()) known.in_place = problem.in_place;
  const auto schedule_of = [&](int other) {
    return packed(selecting::scheduled(selected, known.at(other), arguments.element_bytes));
  };
  // One piece of a message in a fused group, or cutting would be in vain.
  return fused(schedule_of, own, selected.segment > 0 ? 1 : 0);
}

}  // namespace baton::communicator
