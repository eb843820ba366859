#include "baton/timeline.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "baton/error.hpp"
#include "naming.hpp"
#include "steps.hpp"

namespace baton {
namespace {

void name_chunks(Timeline& timeline) {
  timeline.chunks.clear();
  std::map<const std::vector<Schedule>*, timing::StepNames> known;  // calls may share schedules
  for (const TimedOperation& operation : timeline.operations) {
    const auto [names, added] = known.try_emplace(operation.schedules.get());
    if (added && operation.schedules)
      names->second = timing::name_steps(*operation.schedules, timeline.chunks);
  }
  const timing::OwnRanks own(timeline);
  for (Event& event : timeline.events) {
    event.chunk = Event::none;
    const int rank = own.of(event);
    if (rank < 0) continue;
    const auto& names = known.at(timeline.operations[event.operation].schedules.get());
    if (names.of.empty()) continue;
    event.chunk = names.of[names.begin[static_cast<std::size_t>(rank)] + event.step];
  }
}

std::int64_t first_posted(const std::vector<Event>& events) {
  std::int64_t first = events.empty() ? 0 : events[0].posted;
  for (const Event& event : events) first = std::min(first, event.posted);
  return first;
}

void move_origin(std::vector<Event>& events, std::int64_t origin) {
  for (Event& event : events) {
    event.posted -= origin;
    event.start -= origin;
    event.end -= origin;
  }
}

}  // namespace

std::string_view name(TimelineKind kind) {
  switch (kind) {
    case TimelineKind::predicted:
      return "predicted";
    case TimelineKind::measured:
      return "measured";
    case TimelineKind::rounds:
      return "rounds";
  }
  return "";
}

std::int64_t Timeline::duration() const {
  if (events.empty()) return 0;
  std::int64_t first = events[0].posted, last = events[0].end;
  for (const Event& event : events) {
    first = std::min(first, event.posted);
    last = std::max(last, event.end);
  }
  return last - first;
}

void finish(Timeline& timeline) {
  auto& events = timeline.events;
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.rank, a.posted, a.operation, a.step) <
           std::tie(b.rank, b.posted, b.operation, b.step);
  });
  if (timeline.kind != TimelineKind::rounds) move_origin(events, first_posted(events));
  name_chunks(timeline);
  timeline.early_arrivals = 0;
  for (const TimedMessage& message : messages_of(timeline)) {
    timeline.early_arrivals += events[message.recv].end < events[message.send].posted ? 1 : 0;
  }
}

Timeline only(const Timeline& timeline, std::uint32_t operation) {
  if (operation >= timeline.operations.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected an operation from 0 to {}, found {}",
                            static_cast<std::int64_t>(timeline.operations.size()) - 1, operation));
  }
  Timeline one = timeline;
  one.operations = {timeline.operations[operation]};
  std::erase_if(one.events, [&](const Event& event) { return event.operation != operation; });
  for (Event& event : one.events) event.operation = 0;
  if (one.kind == TimelineKind::rounds)  // whole rounds
    move_origin(one.events, first_posted(one.events) / 1000 * 1000);
  finish(one);
  return one;
}

}  // namespace baton
