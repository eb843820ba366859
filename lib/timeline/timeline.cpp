#include "baton/timeline.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "baton/error.hpp"
#include "naming.hpp"

namespace baton {
namespace {

constexpr std::size_t most_named = std::size_t{4} << 20;  // steps of one operation

std::size_t steps_in(const std::vector<Schedule>& schedules) {
  std::size_t steps = 0;
  for (const Schedule& schedule : schedules) steps += schedule.steps().size();
  return steps;
}

/// For an operation: its steps' names in Timeline::chunks, and its own rank for each rank.
struct Names {
  std::vector<std::uint32_t> of, begin;  // begin[i]: of its rank i, in `of`
};

Names named(const std::vector<Schedule>& schedules, std::vector<ChunkName>& chunks) {
  Names names;
  timing::StepNames steps = timing::names_of(schedules);
  names.of = std::move(steps.of);
  for (std::uint32_t& name : names.of) name += static_cast<std::uint32_t>(chunks.size());
  chunks.insert(chunks.end(), steps.names.begin(), steps.names.end());
  names.begin.push_back(0);
  for (const Schedule& schedule : schedules) {
    names.begin.push_back(names.begin.back() + static_cast<std::uint32_t>(schedule.steps().size()));
  }
  return names;
}

void name_chunks(Timeline& timeline) {
  timeline.chunks.clear();
  std::map<const std::vector<Schedule>*, Names> known;  // several calls may share schedules
  std::vector<std::map<int, std::size_t>> places;       // of each operation: rank -> its own rank
  for (const TimedOperation& operation : timeline.operations) {
    std::map<int, std::size_t> its;
    for (std::size_t i = 0; i < operation.ranks.size(); ++i) its[operation.ranks[i]] = i;
    places.push_back(std::move(its));
    const auto* schedules = operation.schedules.get();
    if (schedules == nullptr || known.contains(schedules)) continue;
    known[schedules] = steps_in(*schedules) <= most_named && !schedules->empty()
                           ? named(*schedules, timeline.chunks)
                           : Names{};
  }
  for (Event& event : timeline.events) {
    event.chunk = Event::none;
    if (event.operation >= timeline.operations.size()) continue;
    const TimedOperation& operation = timeline.operations[event.operation];
    const auto names = known.find(operation.schedules.get());
    if (names == known.end()) continue;
    auto rank = static_cast<std::size_t>(event.rank);
    if (!operation.ranks.empty()) {
      const auto place = places[event.operation].find(event.rank);
      if (place == places[event.operation].end()) continue;
      rank = place->second;
    }
    const auto& begin = names->second.begin;
    if (rank + 1 >= begin.size() || event.step >= begin[rank + 1] - begin[rank]) continue;
    event.chunk = names->second.of[begin[rank] + event.step];
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
  std::int64_t origin = events.empty() ? 0 : events[0].posted;
  for (const Event& event : events) origin = std::min(origin, event.posted);
  for (Event& event : events) {
    event.posted -= origin;
    event.start -= origin;
    event.end -= origin;
  }
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
  finish(one);
  return one;
}

}  // namespace baton
