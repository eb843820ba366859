#include "planner.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <utility>
#include <vector>

#include "../base/raise.hpp"

namespace baton::communicator {

using execute::CachedPlan;
using execute::Plan;

void check_lanes(const Schedule& schedule) {
  if (schedule.lanes() > lanes)
    base::refuse("expected a schedule of at most {} lanes, found {}", lanes, schedule.lanes());
}

void RepeatedCalls::forget() {
  for (Entry& entry : entries_) {
    if (entry.run) entry.plan->give(std::move(entry.run));
    entry.plan = nullptr;
  }
}

Problem Planner::problem(const Arguments& arguments) const {
  Problem problem = arguments.problem(context_.rank, context_.size);
  problem.hosts = context_.hosts;
  return problem;
}

selecting::Selection Planner::selection(const Arguments& arguments, const Problem& problem,
                                        const Choice& choice) const {
  const Options& options = context_.options;
  // If some ranks do not know the counts, the counts must not decide.
  selecting::Selection selected =
      arguments.counts_at_root
          ? selecting::Selection{context_.registry->of(problem.collective).front(), 0,
                                 "the root alone knows the counts"}
          : selecting::select(*context_.registry, problem, arguments.element_bytes, choice,
                              options.choices[static_cast<std::size_t>(problem.collective)],
                              context_.section, context_.network);
  if (options.explain && context_.rank == 0) {
    std::fputs(
        fmt::format("baton: {} of {} {} on {} ranks: {}, segment {} B ({})\n",
                    name(problem.collective), problem.count, name(arguments.type), context_.size,
                    selected.algorithm->name, selected.segment, selected.reason)
            .c_str(),
        stderr);
  }
  return selected;
}

CachedPlan& Planner::keep(std::unique_ptr<CachedPlan> plan) {
  if (plans_.full()) repeated_.forget();  // drops references, so that the plans can be dropped
  return plans_.insert(key_, std::move(plan));
}

CachedPlan& Planner::plan(const Arguments& arguments, const Choice& choice, Purpose purpose) {
  key_.clear();
  arguments.append_to(key_);
  if (!choice.algorithm.empty()) key_.add_all(choice.algorithm);
  if (choice.segment) key_.add(*choice.segment);
  const bool touches = memory_ == Memory::host && purpose == Purpose::run;
  if (CachedPlan* const found = plans_.find(key_)) {
    if (touches && !found->reached) [[unlikely]] {
      arguments.check_reach();
      found->reached = true;
    }
    return *found;
  }

  if (touches) arguments.check_reach();
  const Problem problem = this->problem(arguments);
  const selecting::Selection selected = selection(arguments, problem, choice);
  const bool fuses = memory_ == Memory::device_fused;
  const Schedule schedule = fuses
                                ? fused_schedule(arguments, selected, problem)
                                : selecting::scheduled(selected, problem, arguments.element_bytes);
  check_lanes(schedule);
  auto plan = std::make_shared<const Plan>(schedule, arguments.element_bytes, arguments.input_sizes,
                                           arguments.output_sizes);
  auto groups = fuses ? execute::fused_groups_of(*plan) : std::vector<execute::FusedGroup>();
  const bool on_device = memory_ == Memory::device && problem.collective != Collective::barrier;
  CachedPlan& kept =
      keep(std::make_unique<CachedPlan>(std::move(plan), selected.algorithm->name, selected.segment,
                                        on_device ? queue_ : nullptr, std::move(groups)));
  kept.reached = touches;
  return kept;
}

Schedule Planner::schedule(const Arguments& arguments, const Choice& choice) const {
  const Problem problem = this->problem(arguments);
  return selecting::whole(selection(arguments, problem, choice), problem, arguments.element_bytes);
}

CachedPlan& Planner::internal(Collective collective, const char* algorithm, std::int64_t count) {
  key_.clear();
  key_.add(-100 - static_cast<std::int64_t>(collective));
  key_.add(count);
  if (CachedPlan* const found = plans_.find(key_)) return *found;
  Problem problem;
  problem.collective = collective;
  problem.size = context_.size;
  problem.rank = context_.rank;
  problem.count = count;
  const Schedule schedule = Registry::builtin().find(collective, algorithm).generate(problem);
  const std::int64_t input[] = {problem.input_extent()}, output[] = {problem.output_extent()};
  return keep(std::make_unique<CachedPlan>(std::make_shared<const Plan>(schedule, 1, input, output),
                                           algorithm, 0));
}

CachedPlan& Planner::message(StepKind kind, int peer, std::int64_t count, std::size_t bytes) {
  if (count == 0) return message(kind, peer, 1, 0);  // it is sent, too: an element of no bytes
  key_.clear();
  key_.add(-200 - static_cast<std::int64_t>(kind));
  key_.add(peer);
  key_.add(count);
  key_.add(static_cast<std::int64_t>(bytes));
  if (CachedPlan* const found = plans_.find(key_)) return *found;
  Schedule::Header header;
  header.collective = Collective::broadcast;
  // One additional rank stands for this one, since a schedule cannot send to its own rank.
  header.size = context_.size + 1;
  header.rank = context_.size;
  header.output = count;
  Step step;
  step.kind = kind;
  step.peer = peer;
  step.parts[0] = 1;
  const Schedule schedule(header, {step}, {contiguous(Buffer::output, 0, count)});
  const std::int64_t none[] = {0}, output[] = {count};
  return keep(std::make_unique<CachedPlan>(
      std::make_shared<const Plan>(schedule, bytes, none, output), "message", 0));
}

CachedPlan& Planner::nothing() {
  key_.clear();
  key_.add(-300);
  if (CachedPlan* const found = plans_.find(key_)) return *found;
  Schedule::Header header;
  header.collective = Collective::broadcast;
  header.size = context_.size;
  header.rank = context_.rank;
  const std::int64_t none[] = {0};
  return keep(std::make_unique<CachedPlan>(
      std::make_shared<const Plan>(Schedule(header, {}, {}), 1, none, none), "nothing", 0));
}

CachedPlan& Planner::unregistered(const Schedule& schedule, std::size_t element_bytes,
                                  std::int64_t input, std::int64_t output) {
  const std::int64_t inputs[] = {input}, outputs[] = {output};
  unregistered_ = std::make_unique<CachedPlan>(
      std::make_shared<const Plan>(schedule, element_bytes, inputs, outputs),
      schedule.header().algorithm, 0);
  return *unregistered_;
}

}  // namespace baton::communicator
