#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "../schedule/matching.hpp"
#include "baton/error.hpp"
#include "baton/timeline.hpp"
#include "steps.hpp"

namespace baton {
namespace {

/// An event, and two numbers by which it meets its counterpart.
struct Numbered {
  std::pair<std::uint32_t, std::uint32_t> numbers;
  std::uint32_t event;
};

/// Calls visit(event of a, event of b) for each two that have equal numbers, in the order of a.
template <class Visit>
void for_each_pair(const std::vector<Numbered>& a, std::vector<Numbered> b, const Visit& visit) {
  std::ranges::sort(b, {}, &Numbered::numbers);
  for (const Numbered& one : a) {
    const auto other = std::ranges::lower_bound(b, one.numbers, {}, &Numbered::numbers);
    if (other != b.end() && other->numbers == one.numbers) visit(one.event, other->event);
  }
}

/// The events of an operation by their ranks in it and steps; `begin` is the time of the first.
std::vector<Numbered> events_of(const Timeline& timeline, std::uint32_t operation,
                                std::int64_t& begin) {
  if (operation >= timeline.operations.size() || !timeline.operations[operation].schedules) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected an operation with schedules, found number {} of {}",
                            operation, timeline.operations.size()));
  }
  const timing::OwnRanks own(timeline);
  std::vector<Numbered> events;
  for (std::uint32_t e = 0; e < timeline.events.size(); ++e) {
    const Event& event = timeline.events[e];
    const int rank = event.operation == operation ? own.of(event) : -1;
    if (rank < 0) continue;
    begin = events.empty() ? event.posted : std::min(begin, event.posted);
    events.push_back({{static_cast<std::uint32_t>(rank), event.step}, e});
  }
  return events;
}

}  // namespace

std::vector<TimedMessage> messages_of(const Timeline& timeline) {
  const timing::OwnRanks own(timeline);
  std::map<const std::vector<Schedule>*, scheduling::Matching> known;
  std::vector<Numbered> sends, recvs;  // by operation and step of the receive
  for (std::uint32_t e = 0; e < timeline.events.size(); ++e) {
    const Event& event = timeline.events[e];
    const int rank = event.message() ? own.of(event) : -1;
    if (rank < 0) continue;
    const auto& schedules = timeline.operations[event.operation].schedules;
    const auto [matching, added] = known.try_emplace(schedules.get());
    if (added) {
      for (const Schedule& schedule : *schedules) matching->second.add(schedule);
      matching->second.match();  // a recording may lack messages
    }
    const std::uint32_t step = matching->second.first(rank) + event.step;
    if (event.kind == StepKind::recv) {
      recvs.push_back({{event.operation, step}, e});
    } else if (const std::uint32_t recv = matching->second.partner(step);
               recv != scheduling::none) {
      sends.push_back({{event.operation, recv}, e});
    }
  }
  std::vector<TimedMessage> messages;
  for_each_pair(sends, std::move(recvs), [&](std::uint32_t send, std::uint32_t recv) {
    messages.push_back({send, recv});
  });
  const auto place_of = [&](const TimedMessage& message) {
    const Event& event = timeline.events[message.send];
    return std::tuple(event.operation, event.rank, event.step);
  };
  // Sorting costs as much as all else here, and events are often in this order.
  if (!std::ranges::is_sorted(messages, {}, place_of)) std::ranges::sort(messages, {}, place_of);
  return messages;
}

std::vector<JoinedStep> joined(const Timeline& first, std::uint32_t first_operation,
                               const Timeline& second, std::uint32_t second_operation) {
  std::int64_t first_begin = 0, second_begin = 0;
  auto events = events_of(first, first_operation, first_begin);
  auto other_events = events_of(second, second_operation, second_begin);
  const auto& schedules = first.operations[first_operation].schedules;
  const auto& others = second.operations[second_operation].schedules;
  if (schedules != others) {
    if (schedules->size() != others->size()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("expected timelines of the same schedules, found those of {} ranks "
                              "and of {}",
                              schedules->size(), others->size()));
    }
    for (std::size_t r = 0; r < schedules->size(); ++r) {
      if (const auto differ = difference((*schedules)[r], (*others)[r])) {
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format("expected timelines of the same schedules; rank {}: {}", r, *differ));
      }
    }
  }
  std::vector<JoinedStep> steps;
  std::ranges::sort(events, {}, &Numbered::numbers);
  for_each_pair(events, std::move(other_events), [&](std::uint32_t a, std::uint32_t b) {
    const std::int64_t one = first.events[a].end - first_begin;
    const std::int64_t other = second.events[b].end - second_begin;
    steps.push_back({a, b, one - other});
  });
  return steps;
}

}  // namespace baton
