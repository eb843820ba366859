#include "program.hpp"

#include <map>
#include <tuple>

#include "steps.hpp"

namespace baton::transformer {
namespace {

/// A result that is sent: of forward or of backward, of a stage and micro-batch.
using Result = std::tuple<bool, int, int>;

Result result_of(const PipelineAction& action) {
  return {action.work == PipelineWork::forward, action.stage, action.micro_batch};
}
/// The result of another stage that the action needs.
Result need_of(const PipelineAction& action) {
  const bool forward = action.work == PipelineWork::forward;
  return {forward, action.stage + (forward ? -1 : 1), action.micro_batch};
}

}  // namespace

ComputationKind computation_kind(PipelineWork work) {
  switch (work) {
    case PipelineWork::forward:
      return ComputationKind::forward;
    case PipelineWork::backward:
      return ComputationKind::backward;
    case PipelineWork::backward_input:
      return ComputationKind::backward_input;
    case PipelineWork::backward_weight:
      return ComputationKind::backward_weight;
  }
  return ComputationKind::other;
}

Schedule program_of(const PipelineSchedule& schedule, int rank, const PipelineLoad& load) {
  Problem problem;
  problem.collective = Collective::program;
  problem.size = schedule.size();
  problem.rank = rank;
  ScheduleBuilder builder(problem);
  std::map<Result, Region> arrived;
  const std::vector<PipelineStep> steps = steps_of(schedule, rank);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const PipelineStep& step = steps[i];
    if (step.kind == PipelineStepKind::send) continue;  // behind its computation
    builder.lane(step.action.work == PipelineWork::forward ? 0 : 1);
    if (step.kind == PipelineStepKind::recv) {
      const Region region = builder.scratch(load.elements(step.action));
      builder.recv(step.peer, region);
      arrived[result_of(step.action)] = region;
      continue;
    }
    Regions reads, writes;
    const bool needs = step.action.work != PipelineWork::backward_weight;
    if (const auto found = arrived.find(need_of(step.action)); needs && found != arrived.end())
      reads.push_back(found->second);
    const bool sends = i + 1 < steps.size() && steps[i + 1].kind == PipelineStepKind::send;
    if (sends) writes.push_back(builder.scratch(load.elements(step.action)));
    builder.compute({print(step.action), computation_kind(step.action.work), load.ns(step.action)},
                    reads, writes);
    if (sends) builder.send(steps[i + 1].peer, writes[0]);
  }
  return builder.build(schedule.name);
}

std::vector<Schedule> programs_of(const PipelineSchedule& schedule, const PipelineLoad& load) {
  std::vector<Schedule> programs;
  for (int rank = 0; rank < schedule.size(); ++rank)
    programs.push_back(program_of(schedule, rank, load));
  return programs;
}

}  // namespace baton::transformer
