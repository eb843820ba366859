#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "baton/error.hpp"
#include "baton/timeline.hpp"
#include "steps.hpp"

namespace baton {
namespace {

// Times within a round, in ns: first messages, then the work on them.
constexpr std::int64_t round_ns = 1000, messages_end = 740, work_begin = 780, work_end = 960;

/// The round of each step: its label, or a later one if it needs data that arrives in that round.
std::vector<std::int64_t> rounds(const timing::Steps& steps) {
  std::vector<std::int64_t> round(steps.count());
  for (std::uint32_t s = 0; s < steps.count(); ++s) round[s] = std::max(steps.step(s).round, 0);
  std::vector<bool> arrived(steps.count());  // it needs, or is, an arrival of its round
  for (const std::uint32_t s : steps.order()) {
    const StepKind kind = steps.step(s).kind;
    const auto before = [&](std::uint32_t d) { return steps.at(steps.rank(s), d); };
    const auto waits_for = steps.schedule(s).dependencies(steps.index(s));
    for (const std::uint32_t d : waits_for) {
      const bool later = kind == StepKind::send && arrived[before(d)];
      round[s] = std::max(round[s], round[before(d)] + (later ? 1 : 0));
    }
    if (kind == StepKind::recv) round[s] = std::max(round[s], round[steps.partner(s)]);
    arrived[s] = kind == StepKind::recv;
    for (const std::uint32_t d : waits_for) {
      if (kind != StepKind::send && round[before(d)] == round[s] && arrived[before(d)]) {
        arrived[s] = true;
      }
    }
  }
  return round;
}

}  // namespace

Timeline rounds_of(std::shared_ptr<const std::vector<Schedule>> schedules,
                   std::size_t element_bytes) {
  const std::size_t ranks = schedules ? schedules->size() : 0;
  if (ranks == 0) {
    throw Error(ErrorCode::invalid_argument, "expected a schedule for each rank, found none");
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    const Schedule& schedule = (*schedules)[r];
    if (schedule.size() != static_cast<int>(ranks) || schedule.rank() != static_cast<int>(r)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("expected one schedule for each rank, found rank {} of {} at place "
                              "{} of {}",
                              schedule.rank(), schedule.size(), r, ranks));
    }
  }
  Timeline timeline;
  timeline.kind = TimelineKind::rounds;
  timeline.ranks = static_cast<int>(ranks);
  const Schedule::Header& header = schedules->front().header();
  TimedOperation operation;
  operation.name = std::string(name(header.collective));
  operation.choice = {header.algorithm, 0};
  operation.element_bytes = element_bytes;
  for (const Schedule& schedule : *schedules) {
    operation.bytes =
        std::max({operation.bytes, schedule.header().input, schedule.header().output});
  }
  operation.bytes *= static_cast<std::int64_t>(element_bytes);
  operation.schedules = std::move(schedules);

  const timing::Steps steps(*operation.schedules);
  const std::vector<std::int64_t> round = rounds(steps);
  // Pieces of one message leave one after the other.
  std::map<std::pair<std::int64_t, int>, std::int64_t> count, next;  // by round and channel
  const auto channel = [&](std::uint32_t s) {
    return std::pair(round[s], (steps.step(s).peer << 8) + steps.step(s).lane);
  };
  std::vector<std::pair<std::int64_t, std::int64_t>> sent(steps.count());  // from, to
  for (int r = 0; r < timeline.ranks; ++r) {
    const std::uint32_t first = steps.at(r, 0), end = steps.at(r + 1, 0);
    count.clear();
    next.clear();
    for (std::uint32_t s = first; s < end; ++s) {
      if (steps.step(s).kind == StepKind::send) ++count[channel(s)];
    }
    for (std::uint32_t s = first; s < end; ++s) {
      if (steps.step(s).kind != StepKind::send) continue;
      const std::int64_t i = next[channel(s)]++, n = count[channel(s)];
      const std::int64_t base = round[s] * round_ns;
      sent[s] = {base + i * messages_end / (n + 1), base + (i + 2) * messages_end / (n + 1)};
    }
  }
  for (int r = 0; r < timeline.ranks; ++r) {
    const std::uint32_t first = steps.at(r, 0), end = steps.at(r + 1, 0);
    std::map<std::int64_t, std::int64_t> work, done;  // by round
    for (std::uint32_t s = first; s < end; ++s) work[round[s]] += steps.step(s).message() ? 0 : 1;
    for (std::uint32_t s = first; s < end; ++s) {
      const Step& step = steps.step(s);
      Event event;
      event.step = s - first;
      event.rank = steps.rank(s);
      event.peer = step.message() ? step.peer : -1;
      event.kind = step.kind;
      event.lane = step.lane;
      if (step.kind != StepKind::compute)
        event.bytes = steps.schedule(s).length(step) * static_cast<std::int64_t>(element_bytes);
      const std::int64_t base = round[s] * round_ns;
      if (step.kind == StepKind::send) {
        event.posted = event.start = sent[s].first;
        event.end = sent[s].second;
      } else if (step.kind == StepKind::recv) {
        const std::uint32_t send = steps.partner(s);
        event.posted = event.start = base;
        event.end = base + messages_end;
        if (send != timing::Steps::none && round[send] == round[s]) event.end = sent[send].second;
      } else {
        const std::int64_t i = done[round[s]]++, n = work[round[s]];
        event.posted = event.start = base + work_begin + i * (work_end - work_begin) / n;
        event.end = base + work_begin + (i + 1) * (work_end - work_begin) / n;
      }
      timeline.events.push_back(event);
    }
  }
  timeline.operations.push_back(std::move(operation));
  finish(timeline);
  return timeline;
}

}  // namespace baton
