#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "../schedule/matching.hpp"
#include "baton/error.hpp"
#include "baton/timeline.hpp"

namespace baton {
namespace {

/// One end of a message in an operation: an event, and the number of the receive's step.
struct End {
  std::uint32_t operation, recv, event;
  bool operator<(const End& other) const {
    return std::tie(operation, recv) < std::tie(other.operation, other.recv);
  }
};

/// For each rank of the timeline, its rank in the operation; -1: none.
std::vector<int> places_in(const TimedOperation& operation, int ranks) {
  std::vector<int> places(static_cast<std::size_t>(std::max(ranks, 0)), -1);
  if (!operation.schedules) return places;
  for (std::size_t i = 0; i < operation.schedules->size(); ++i) {
    const auto rank = operation.ranks.empty()      ? static_cast<int>(i)
                      : i < operation.ranks.size() ? operation.ranks[i]
                                                   : -1;
    if (rank >= 0 && rank < ranks) places[static_cast<std::size_t>(rank)] = static_cast<int>(i);
  }
  return places;
}

}  // namespace

std::vector<TimedMessage> messages_of(const Timeline& timeline) {
  std::map<const std::vector<Schedule>*, scheduling::Matching> known;
  std::map<std::uint32_t, std::vector<int>> places;  // of operations
  std::vector<End> sends, recvs;
  for (std::uint32_t e = 0; e < timeline.events.size(); ++e) {
    const Event& event = timeline.events[e];
    if (!event.message() || event.operation >= timeline.operations.size()) continue;
    const TimedOperation& operation = timeline.operations[event.operation];
    if (!operation.schedules) continue;
    auto place = places.find(event.operation);
    if (place == places.end()) {
      place = places.emplace(event.operation, places_in(operation, timeline.ranks)).first;
    }
    const auto [matching, added] = known.try_emplace(operation.schedules.get());
    if (added) {
      for (const Schedule& schedule : *operation.schedules) matching->second.add(schedule);
      matching->second.match();  // a recording may lack messages
    }
    if (event.rank < 0 || event.rank >= timeline.ranks) continue;
    const int own = place->second[static_cast<std::size_t>(event.rank)];
    if (own < 0) continue;
    const std::uint32_t first = matching->second.first(own);
    if (event.step >= matching->second.first(own + 1) - first) continue;
    const std::uint32_t step = first + event.step;
    if (event.kind == StepKind::recv) {
      recvs.push_back({event.operation, step, e});
    } else if (const std::uint32_t recv = matching->second.partner(step);
               recv != scheduling::none) {
      sends.push_back({event.operation, recv, e});
    }
  }
  std::sort(sends.begin(), sends.end());
  std::sort(recvs.begin(), recvs.end());
  std::vector<TimedMessage> messages;
  for (auto send = sends.begin(), recv = recvs.begin();
       send != sends.end() && recv != recvs.end();) {
    if (*send < *recv) {
      ++send;
    } else if (*recv < *send) {
      ++recv;
    } else {
      messages.push_back({send++->event, recv++->event});
    }
  }
  std::sort(messages.begin(), messages.end(), [&](const TimedMessage& a, const TimedMessage& b) {
    const Event& x = timeline.events[a.send];
    const Event& y = timeline.events[b.send];
    return std::tie(x.operation, x.rank, x.step) < std::tie(y.operation, y.rank, y.step);
  });
  return messages;
}

namespace {

struct Placed {
  int rank;  // of the operation
  std::uint32_t step, event;
  bool operator<(const Placed& other) const {
    return std::tie(rank, step) < std::tie(other.rank, other.step);
  }
};

/// The events of an operation by its own ranks and steps; `begin` is the time of the first.
std::vector<Placed> placed(const Timeline& timeline, std::uint32_t operation, std::int64_t& begin) {
  if (operation >= timeline.operations.size() || !timeline.operations[operation].schedules) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected an operation with schedules, found number {} of {}",
                            operation, timeline.operations.size()));
  }
  const auto places = places_in(timeline.operations[operation], timeline.ranks);
  std::vector<Placed> events;
  for (std::uint32_t e = 0; e < timeline.events.size(); ++e) {
    const Event& event = timeline.events[e];
    if (event.operation != operation) continue;
    begin = events.empty() ? event.posted : std::min(begin, event.posted);
    events.push_back({places[static_cast<std::size_t>(event.rank)], event.step, e});
  }
  std::sort(events.begin(), events.end());
  return events;
}

}  // namespace

std::vector<JoinedStep> joined(const Timeline& first, std::uint32_t first_operation,
                               const Timeline& second, std::uint32_t second_operation) {
  std::int64_t first_begin = 0, second_begin = 0;
  const auto a = placed(first, first_operation, first_begin);
  const auto b = placed(second, second_operation, second_begin);
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
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] < b[j]) {
      ++i;
    } else if (b[j] < a[i]) {
      ++j;
    } else {
      const std::int64_t one = first.events[a[i].event].end - first_begin;
      const std::int64_t other = second.events[b[j].event].end - second_begin;
      steps.push_back({a[i++].event, b[j++].event, one - other});
    }
  }
  return steps;
}

}  // namespace baton
