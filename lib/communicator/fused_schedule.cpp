#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../execute/plan.hpp"
#include "baton/error.hpp"
#include "baton/schedule/passes.hpp"
#include "planner.hpp"

namespace baton::communicator {
namespace {

/// The ends of rank `rank` of its messages with the rank of `own`, derived from `own`. None waits
/// for another.
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

/// Fuses a schedule if each rank knows only its own counts. The result is one fused group, so all
/// ranks agree. Throws if a message waits for another.
Schedule fused_alone(const Schedule& own, const std::string& algorithm) {
  Schedule schedule =
      fused([&](int rank) { return rank == own.rank() ? own : other_ends(own, rank); }, own.rank());
  const auto later = [](const Step& step) { return step.message() && step.round > 0; };
  if (std::ranges::any_of(schedule.steps(), later))
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: expected an algorithm whose messages do not wait for one another, "
                            "since ranks know only their own counts; found {}",
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
  // This rank does not know whether others call in place. Calls in place wait for more.
  Problem known = problem;
  known.in_place = known.input_rows == known.output_rows;
  if (!refusal(*selected.algorithm, known).empty()) known.in_place = problem.in_place;
  const auto schedule_of = [&](int other) {
    return packed(selecting::scheduled(selected, known.at(other), arguments.element_bytes));
  };
  // With segments, each piece of a message needs its own fused group; one group would undo the cut.
  return fused(schedule_of, own, selected.segment > 0 ? 1 : 0);
}

}  // namespace baton::communicator
