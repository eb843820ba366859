#include "baton/simulate.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include "baton/error.hpp"
#include "baton/schedule/passes.hpp"
#include "engine.hpp"
#include "memory.hpp"
#include "shapes.hpp"

namespace baton {
namespace {

using simulating::FlatRank;
using simulating::Program;
using simulating::Shapes;
using simulating::State;
using simulating::StepTimes;

std::vector<int> hosts_of(const SimulateOptions& options, int ranks) {
  if (!options.hosts) return std::vector<int>(static_cast<std::size_t>(ranks), 0);
  if (options.hosts->size() != ranks) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("simulate: expected the hosts of {} ranks, found those of {}", ranks,
                            options.hosts->size()));
  }
  return {options.hosts->of().begin(), options.hosts->of().end()};
}

int calls_of(const SimulateOptions& options) {
  if (options.calls >= 1 && (options.calls == 1 || !options.timeline)) return options.calls;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("simulate: expected 1 call or more, and 1 for a timeline, found {}",
                          options.calls));
}

Prediction predicted(const Program& program, const Network& network, const SimulateOptions& options,
                     std::vector<StepTimes>* times) {
  const std::vector<int> host_of = hosts_of(options, program.size());
  const auto begin = std::chrono::steady_clock::now();
  if (times) times->resize(program.steps);
  State state(program, network, host_of, times);
  const simulating::Outcome outcome = simulating::run(state, network, options);
  simulating::check_finished(program, state);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  Prediction prediction;
  for (const simulating::RankState& rank : state.ranks) prediction.finish.push_back(rank.finish);
  prediction.total = *std::max_element(prediction.finish.begin(), prediction.finish.end());
  prediction.messages = static_cast<std::int64_t>(program.messages / 2);
  prediction.steps = static_cast<std::int64_t>(program.steps);
  prediction.events = outcome.events;
  prediction.seconds = seconds.count();
  prediction.hosts = std::move(state.host_bytes);
  prediction.bytes_within = outcome.bytes_within;
  return prediction;
}

/// Elements of the whole vector, counted as in nccl-tests.
std::int64_t vector_elements(const std::vector<Schedule>& schedules) {
  std::int64_t most = 0;
  for (const Schedule& s : schedules) {
    most = std::max({most, s.header().input, s.header().output});
  }
  return schedules[0].collective() == Collective::barrier ? 0 : most;
}

Timeline timeline_of(std::shared_ptr<const std::vector<Schedule>> schedules, const Program& program,
                     const std::vector<StepTimes>& times, std::size_t element_bytes,
                     const Network& network, const SimulateOptions& options) {
  const Schedule::Header& header = schedules->front().header();
  Timeline timeline;
  timeline.kind = TimelineKind::predicted;
  timeline.parameters = summary(network);
  timeline.ranks = program.size();
  if (options.hosts) timeline.hosts = hosts_of(options, program.size());
  TimedOperation operation;
  operation.name = name(header.collective);
  operation.choice = {header.algorithm, 0};
  operation.element_bytes = element_bytes;
  operation.bytes = vector_elements(*schedules) * static_cast<std::int64_t>(element_bytes);
  operation.schedules = std::move(schedules);
  timeline.operations.push_back(std::move(operation));
  for (int r = 0; r < program.size(); ++r) {
    const simulating::Shape& shape = *program.rank(r).shape;
    const auto begin = static_cast<std::ptrdiff_t>(timeline.events.size());
    for (std::uint32_t i = 0; i < shape.size(); ++i) {
      const simulating::Shape::Step& step = shape.steps[i];
      const StepTimes& own = times[program.rank(r).first_step + i];
      Event event;
      event.step = i;
      event.rank = r;
      event.kind = step.kind;
      event.bytes = step.kind == StepKind::compute ? 0 : step.bytes;
      if (step.message()) {
        event.peer = program.channel(r, step.channel).peer;
        event.lane = shape.channels[step.channel].lane;
      }
      event.posted = own.posted;
      event.start = own.start;
      event.end = own.end;
      timeline.events.push_back(event);
    }
    std::stable_sort(timeline.events.begin() + begin, timeline.events.end(),
                     [](const Event& a, const Event& b) { return a.posted < b.posted; });
  }
  return timeline;
}

/// Flattens all ranks, with one thread per processor.
Program program_of(int ranks, const std::function<FlatRank(int)>& rank_of) {
  const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 16);
  constexpr int each = 256;  // ranks that a thread flattens before it joins them
  std::vector<FlatRank> flat(static_cast<std::size_t>(std::min(ranks, threads * each)));
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(threads));
  Program program;
  for (int first = 0; first < ranks; first += threads * each) {
    const auto load = [&](int t) {
      try {
        const int end = std::min(ranks - first, (t + 1) * each);
        for (int i = t * each; i < end; ++i) flat[static_cast<std::size_t>(i)] = rank_of(first + i);
      } catch (...) {
        failures[static_cast<std::size_t>(t)] = std::current_exception();
      }
    };
    {
      std::vector<std::jthread> others;
      for (int t = 1; t < threads && first + t * each < ranks; ++t) others.emplace_back(load, t);
      load(0);
    }
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
    for (int i = 0; i < std::min(ranks - first, threads * each); ++i) {
      program.add(flat[static_cast<std::size_t>(i)]);
    }
  }
  program.match();
  return program;
}

}  // namespace

Prediction simulate(const std::shared_ptr<const std::vector<Schedule>>& schedules,
                    std::size_t element_bytes, const Network& network,
                    const SimulateOptions& options) {
  if (!schedules || schedules->empty()) {
    throw Error(ErrorCode::invalid_argument, "simulate: expected schedules, found none");
  }
  const int calls = calls_of(options);
  auto executed = std::make_shared<std::vector<Schedule>>();
  Shapes shapes(element_bytes, 0, calls);
  Program program;
  for (const Schedule& schedule : *schedules) {
    const auto expected = static_cast<int>(executed->size());
    const auto ranks = static_cast<int>(schedules->size());
    if (schedule.rank() != expected || schedule.size() != ranks) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("simulate: expected the schedule of rank {} of {}, found that of "
                              "rank {} of {}",
                              expected, ranks, schedule.rank(), schedule.size()));
    }
    executed->push_back(packed(segmented(schedule, options.segment)));
    program.add(shapes.of(executed->back()));
  }
  program.match();
  std::vector<StepTimes> times;
  Prediction prediction = predicted(program, network, options, options.timeline ? &times : nullptr);
  if (options.timeline) {
    prediction.timeline =
        timeline_of(std::move(executed), program, times, element_bytes, network, options);
  }
  return prediction;
}

Prediction simulate(int ranks, const std::function<Schedule(int)>& schedule_of,
                    std::size_t element_bytes, const Network& network,
                    const SimulateOptions& options) {
  if (ranks < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("simulate: expected at least 1 rank, found {}", ranks));
  }
  if (options.timeline) {
    auto schedules = std::make_shared<std::vector<Schedule>>();
    for (int r = 0; r < ranks; ++r) schedules->push_back(schedule_of(r));
    return simulate(std::move(schedules), element_bytes, network, options);
  }
  Shapes shapes(element_bytes, options.segment, calls_of(options));
  const auto rank_of = [&](int rank) { return shapes.of(schedule_of(rank)); };
  simulating::check_memory(ranks, rank_of, network);
  return predicted(program_of(ranks, rank_of), network, options, nullptr);
}

}  // namespace baton
