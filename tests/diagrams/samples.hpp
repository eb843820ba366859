#pragma once
/// Timelines with times, made up by a simple model, for the tests of pictures.

#include "../timeline/timelines.hpp"
#include "timeline/steps.hpp"

namespace support {

/// What the rounds of a timeline might take: calls of 400 ns, 2 µs under way, 1 ns per 4 bytes, a
/// rank that begins `late` ns late.
inline baton::Timeline timed(const baton::Timeline& rounds, baton::TimelineKind kind,
                             int late_rank = -1, std::int64_t late = 0) {
  using namespace baton;
  Timeline timeline = rounds;
  timeline.kind = kind;
  const auto& schedules = *timeline.operations[0].schedules;
  const timing::Steps steps(schedules);
  std::vector<Event> events(steps.count());
  for (const Event& event : rounds.events) {
    events[steps.at(event.rank, event.step)] = event;
  }
  std::vector<std::int64_t> busy(schedules.size());
  if (late_rank >= 0) busy[static_cast<std::size_t>(late_rank)] = late;
  for (const std::uint32_t s : steps.order()) {
    Event& event = events[s];
    std::int64_t& free = busy[static_cast<std::size_t>(event.rank)];
    std::int64_t ready = event.rank == late_rank ? late : 0;
    for (const std::uint32_t d : steps.schedule(s).dependencies(steps.index(s))) {
      ready = std::max(ready, events[steps.at(event.rank, d)].end);
    }
    if (event.kind == StepKind::recv) {
      event.posted = event.start = ready;
      event.end = std::max(ready, events[steps.partner(s)].posted + 2400 + event.bytes / 4);
    } else if (event.kind == StepKind::send) {
      event.posted = std::max(ready, free);
      event.start = free = event.posted + 400;
      event.end = event.start + event.bytes / 4;
    } else {
      event.posted = ready;
      event.start = std::max(ready, free);
      event.end = free = event.start + 100 + event.bytes / 16;
    }
  }
  timeline.events = events;
  finish(timeline);
  return timeline;
}

}  // namespace support
