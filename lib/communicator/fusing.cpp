#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "baton/schedule/passes.hpp"
#include "state.hpp"

namespace baton {
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

Schedule Communicator::State::fused_schedule(const Selection& selected,
                                             const Problem& problem) const {
  const Schedule own = bound(scheduled(selected, problem, arguments.element_bytes),
                             arguments.input_sizes, arguments.output_sizes);
  if (arguments.counts_at_root ||
      (problem.collective == Collective::all_to_all && problem.uneven()))
    return fused_alone(own, selected.algorithm->name);
  // Whether others call in place is not known here; who does waits for more.
  Problem known = problem;
  known.in_place = known.input_rows == known.output_rows;
  if (!refusal(*selected.algorithm, known).empty()) known.in_place = problem.in_place;
  const auto schedule_of = [&](int other) {
    return packed(scheduled(selected, known.at(other), arguments.element_bytes));
  };
  // One piece of a message in a fused group, or cutting would be in vain.
  return fused(schedule_of, own, selected.segment > 0 ? 1 : 0);
}

void Communicator::State::compare(const Choice& choice, const Error* wrong, int tag) {
  prepare_check(blocking, choice, wrong);
  const std::unique_ptr<CheckExchange> check = std::move(blocking.check());
  const auto exchange = [&](Execution& execution) {
    blocking.execution() = std::move(execution);
    blocking.begin("comparison of calls", sequence, tag);
    run_blocking();
  };
  exchange(check->gather);
  if (rank == 0) check->judge(size);
  exchange(check->broadcast);
  check->conclude(rank);
}

void Communicator::State::enqueue_fused(const Call& call, const Choice& choice, Stream stream) {
  const InUse in_use(*busy);
  require_usable();
  FusedCalls& calls = *on_device->fused;
  try {
    calls.reap();
  } catch (const Error& error) {
    give_up_fused(error);
  }
  const int tag = next_tag();
  CachedPlan* plan = nullptr;
  const auto bind = [&] {
    on_device->device->check_stream(stream);
    arguments.bind(call, rank, size);
    check_residence();
    plan = &cached_plan(choice);
  };
  if (!options.check) {
    bind();
  } else {
    complete_fused();  // the host's messages and fused groups are never under way together
    std::optional<Error> wrong;
    try {
      bind();
    } catch (const Error& error) {
      wrong = error;
    }
    compare(choice, wrong ? &*wrong : nullptr, tag);
  }
  const char* const what = name(call.collective).data();
  std::span<std::byte* const> tensors = arguments.bases;
  if (call.collective == Collective::barrier) tensors = {};
  try {
    calls.give(*plan, kernels(call.collective, call.op, arguments.type), tensors, stream, what,
               sequence, options.timeout.count() > 0);
  } catch (const Error& error) {
    give_up_fused(named(error, what, sequence, rank));
  }
}

void Communicator::State::complete_fused() {
  require_usable();
  try {
    on_device->fused->wait(options.timeout);
  } catch (const Error& error) {
    give_up_fused(error);
  }
}

void Communicator::State::give_up_fused(const Error& error) {
  break_off(error.what());
  on_device->fused->give_up();
  throw error;
}

}  // namespace baton
