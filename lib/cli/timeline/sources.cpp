#include "sources.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "baton/error.hpp"
#include "baton/simulate.hpp"
#include "cli/common/text.hpp"

namespace baton::cli::timeline {
namespace {

/// When each operation began and ended, and whether all its steps are there.
struct Extent {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max(), end = 0;
  std::size_t events = 0;
  bool whole = false;

  std::int64_t duration() const { return end - begin; }
};

std::vector<Extent> extents(const Trace& trace) {
  const Timeline& timeline = trace.timeline;
  std::vector<Extent> all(timeline.operations.size());
  for (const Event& event : timeline.events) {
    Extent& extent = all[event.operation];
    extent.begin = std::min(extent.begin, event.posted);
    extent.end = std::max(extent.end, event.end);
    ++extent.events;
  }
  for (std::size_t o = 0; o < all.size(); ++o) {
    const TimedOperation& operation = timeline.operations[o];
    std::size_t steps = 0;
    bool known = true;  // a rank whose events of the operation are all lost has no steps there
    for (std::size_t r = 0; r < operation.schedules->size(); ++r) {
      const std::size_t its = (*operation.schedules)[r].steps().size();
      known &= its > 0 || !lacks_events(trace, operation.rank_of(static_cast<int>(r)));
      steps += its;
    }
    all[o].whole = known && all[o].events == steps && steps > 0;
  }
  return all;
}

/// The properties that alike operations have in common.
auto kind_of(const TimedOperation& operation) {
  return std::tuple(operation.name, operation.choice.algorithm, operation.choice.segment,
                    operation.type, operation.op, operation.bytes, operation.ranks);
}

/// Sets the properties that schedules do not have.
void describe(Timeline& timeline, const TimedCollective& collective) {
  TimedOperation& to = timeline.operations[0];
  const TimedOperation& from = collective.operation;
  to.type = from.type;
  to.op = from.op;
  to.choice.segment = from.choice.segment.value_or(0);
  if (from.bytes >= 0) to.bytes = from.bytes;
  if (collective.hosts) {
    timeline.hosts.assign(collective.hosts->of().begin(), collective.hosts->of().end());
  }
}

}  // namespace

bool lacks_events(const Trace& trace, int rank) {
  const std::vector<std::uint64_t>& dropped = trace.timeline.dropped;
  return (!dropped.empty() && dropped[static_cast<std::size_t>(rank)] > 0) ||
         std::ranges::binary_search(trace.incomplete, rank);
}

Timeline rounds_of(const TimedCollective& collective) {
  Timeline timeline =
      baton::rounds_of(collective.operation.schedules, collective.operation.element_bytes);
  describe(timeline, collective);
  return timeline;
}

Timeline predicted(const TimedCollective& collective, const std::string& network) {
  SimulateOptions how;
  how.hosts = collective.hosts;
  how.timeline = true;
  Timeline timeline = *simulate(collective.operation.schedules, collective.operation.element_bytes,
                                network_named(network), how)
                           .timeline;
  finish(timeline);
  describe(timeline, collective);
  return timeline;
}

Timeline predicted_beside(const Timeline& recording, const TimedCollective& collective,
                          const std::string& network) {
  Timeline timeline = predicted(collective, network);
  TimedOperation& operation = timeline.operations[0];
  operation.ranks = collective.operation.ranks;
  if (operation.ranks.empty()) return timeline;
  timeline.ranks = recording.ranks;
  timeline.hosts = recording.hosts;
  timeline.host_names = recording.host_names;
  for (Event& event : timeline.events) {
    event.rank = operation.rank_of(event.rank);
    if (event.message()) event.peer = operation.rank_of(event.peer);
  }
  finish(timeline);
  return timeline;
}

Trace recorded(const std::vector<std::string>& files, bool force) {
  Trace trace = read_trace(files, force);
  for (const std::string& damage : trace.damage) fmt::print(stderr, "baton: {}\n", damage);
  return trace;
}

std::uint32_t typical_operation(const Trace& trace) {
  const Timeline& timeline = trace.timeline;
  const auto all = extents(trace);
  std::vector<std::uint32_t> like;
  for (auto o = static_cast<std::uint32_t>(all.size()); o-- > 0;) {
    const bool of_that_kind = like.empty() || kind_of(timeline.operations[o]) ==
                                                  kind_of(timeline.operations[like.front()]);
    if (all[o].whole && of_that_kind) like.push_back(o);
  }
  if (like.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected a recording with a complete operation, "
                            "found {} with missing steps",
                            counted(all.size(), "operation")));
  }
  const auto median = like.begin() + static_cast<std::ptrdiff_t>(like.size() / 2);
  std::nth_element(like.begin(), median, like.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(all[a].duration(), a) < std::pair(all[b].duration(), b);
  });
  return *median;
}

std::string contents(const Trace& trace) {
  const Timeline& timeline = trace.timeline;
  const auto all = extents(trace);
  using Kind = decltype(kind_of(timeline.operations[0]));
  std::vector<std::pair<Kind, std::vector<std::uint32_t>>> kinds;  // as they first appear
  std::map<Kind, std::size_t> place;
  for (std::uint32_t o = 0; o < all.size(); ++o) {
    const auto kind = kind_of(timeline.operations[o]);
    const auto [found, fresh] = place.try_emplace(kind, kinds.size());
    if (fresh) kinds.push_back({kind, {}});
    kinds[found->second].second.push_back(o);
  }
  std::string text = fmt::format(
      "# {} on {}, {}", counted(timeline.ranks, "rank"),
      timeline.host_names.size() > 1 ? counted(timeline.host_names.size(), "host") : "1 host",
      timeline.clock_error > 0
          ? fmt::format("clocks known to {} us",
                        microseconds(static_cast<double>(timeline.clock_error) * 1e-9))
          : "one clock");
  const auto dropped =
      std::accumulate(timeline.dropped.begin(), timeline.dropped.end(), std::uint64_t{0});
  if (dropped > 0) text += fmt::format(", {} dropped", counted(dropped, "event"));
  if (!trace.incomplete.empty()) {
    const auto ranks = static_cast<std::size_t>(timeline.ranks);
    text += fmt::format(", whole parts of {} of {} ranks", ranks - trace.incomplete.size(), ranks);
  }
  if (timeline.early_arrivals > 0)
    text += fmt::format(", {} before injection", counted(timeline.early_arrivals, "arrival"));
  text += fmt::format("\n# {:>9} {:>9} {:>9}  {:<14} {:<24} {:>12} {:>6} {:>12}\n", "first",
                      "calls", "whole", "collective", "algorithm", "bytes", "ranks", "median us");
  for (const auto& [kind, members] : kinds) {
    const TimedOperation& operation = timeline.operations[members.front()];
    std::vector<std::int64_t> durations;
    for (const std::uint32_t o : members) {
      if (all[o].whole) durations.push_back(all[o].duration());
    }
    std::string median = "-";
    if (!durations.empty()) {
      const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
      std::nth_element(durations.begin(), middle, durations.end());
      median = microseconds(static_cast<double>(*middle) * 1e-9);
    }
    text += fmt::format(
        "  {:>9} {:>9} {:>9}  {:<14} {:<24} {:>12} {:>6} {:>12}\n", members.front(), members.size(),
        durations.size(), operation.name,
        operation.choice.segment.value_or(0) > 0
            ? fmt::format("{}:{}", operation.choice.algorithm, *operation.choice.segment)
            : operation.choice.algorithm,
        operation.bytes, operation.schedules->size(), median);
  }
  return text;
}

}  // namespace baton::cli::timeline
