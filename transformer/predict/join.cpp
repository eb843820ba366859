#include "join.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "baton/error.hpp"

namespace baton::transformer {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// What equal items have in common.
using Key = std::tuple<std::string, std::vector<int>, std::int64_t>;
Key key_of(const StepItem& item) { return {item.name, item.ranks, item.bytes}; }

/// When an item begins with this event: receives may be posted long before.
std::int64_t begin_of(const Event& event) {
  if (event.kind == StepKind::recv) return event.end;
  return event.message() ? event.posted : event.start;
}

/// An item of a recording, and its events.
struct Recorded {
  StepItem item;
  std::vector<std::uint32_t> events;
};

/// The only step of a recorded computation, if the operation is one.
const Computation* computation_of(const TimedOperation& operation) {
  if (!operation.schedules || operation.schedules->empty()) return nullptr;
  const Schedule& schedule = operation.schedules->front();
  if (schedule.header().collective != Collective::program || schedule.steps().size() != 1 ||
      schedule.steps()[0].kind != StepKind::compute)
    return nullptr;
  return &schedule.computation(schedule.steps()[0]);
}

StepItem item_of(const TimedOperation& operation, const Event& event, int ranks) {
  StepItem item;
  item.rank = event.rank;
  if (const Computation* const computation = computation_of(operation)) {
    item.name = computation->name;
    item.computation = computation->kind;
    return item;
  }
  item.name = operation.name == "message" ? std::string(name(event.kind)) : operation.name;
  item.ranks = operation.ranks;
  for (int rank = 0; operation.ranks.empty() && rank < ranks; ++rank) item.ranks.push_back(rank);
  item.bytes = operation.bytes;
  return item;
}

/// All items of each rank, in the order in which they begin.
std::vector<std::vector<Recorded>> recorded_items(const Timeline& timeline) {
  std::map<std::pair<std::uint32_t, int>, Recorded> all;  // by operation and rank
  for (std::uint32_t e = 0; e < timeline.events.size(); ++e) {
    const Event& event = timeline.events[e];
    const TimedOperation& operation = timeline.operations[event.operation];
    auto [found, added] = all.try_emplace({event.operation, event.rank});
    Recorded& its = found->second;
    const std::int64_t begin = begin_of(event);
    if (added) {
      its.item = item_of(operation, event, timeline.ranks);
      its.item.begin = never;
    }
    its.item.begin = std::min(its.item.begin, begin);
    if (event.end >= its.item.end) its.item.end = event.end, its.item.last = e;
    its.events.push_back(e);
  }
  std::vector<std::vector<Recorded>> ranks(static_cast<std::size_t>(timeline.ranks));
  for (auto& [key, its] : all)
    ranks[static_cast<std::size_t>(its.item.rank)].push_back(std::move(its));
  for (auto& rank : ranks)
    std::ranges::stable_sort(rank, {}, [](const Recorded& its) { return its.item.begin; });
  return ranks;
}

/// Whether recordings have a computation. The backward of embeddings in one stage is no use of
/// their unit.
bool recorded(const Computation& computation) {
  return !computation.name.empty() && !computation.name.starts_with("embeddings of ");
}

bool is_optimizer(const StepItem& item) { return item.computation == ComputationKind::optimizer; }

/// The places in `recorded` of the last step's items of a key: as many as there are in a step
/// before the optimizer, and behind it.
class LastStep {
 public:
  explicit LastStep(const std::vector<Recorded>& recorded) {
    for (std::size_t i = 0; i < recorded.size(); ++i)
      if (is_optimizer(recorded[i].item)) optimizer_ = i;
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      const bool behind = recorded[i].item.begin > recorded[optimizer_].item.begin;
      places_[{key_of(recorded[i].item), behind}].push_back(i);
    }
  }
  /// The k-th of n; none if there are fewer.
  std::optional<std::size_t> at(const Key& key, bool behind, std::size_t k, std::size_t n) const {
    const auto found = places_.find({key, behind});
    if (found == places_.end() || found->second.size() < n) return {};
    return found->second[behind ? k : found->second.size() - n + k];
  }

 private:
  std::size_t optimizer_ = 0;
  std::map<std::pair<Key, bool>, std::vector<std::size_t>> places_;
};

void move_origin(JoinedStepItems& joined, std::int64_t begin) {
  for (JoinedItem& item : joined.items) {
    item.measured.begin -= begin;
    item.measured.end -= begin;
  }
  for (Event& event : joined.measured.events) {
    event.posted -= begin;
    event.start -= begin;
    event.end -= begin;
  }
}

}  // namespace

std::vector<StepItem> items_of(const StepPlan& plan, const Timeline& predicted) {
  const int ranks = plan.layout.ranks();
  const auto element = static_cast<std::int64_t>(size_of(plan.model.type));
  std::vector<std::map<std::uint32_t, const Event*>> events(static_cast<std::size_t>(ranks));
  for (const Event& event : predicted.events)
    events[static_cast<std::size_t>(event.rank)][event.step] = &event;
  std::vector<StepItem> items;
  for (int rank = 0; rank < ranks; ++rank) {
    const StepProgram program = step_program(plan, rank);
    const auto& own = events[static_cast<std::size_t>(rank)];
    const auto extend = [&](StepItem& item, std::uint32_t step) {
      const auto found = own.find(step);
      if (found == own.end()) return;
      const Event& event = *found->second;
      item.begin = std::min(item.begin, begin_of(event));
      if (event.end < item.end) return;
      item.end = event.end;
      item.last = static_cast<std::uint32_t>(&event - predicted.events.data());
    };
    const auto steps = program.schedule.steps();
    const Computation* last = nullptr;
    std::uint32_t optimizer = 0;
    for (std::uint32_t s = 0; s < steps.size(); ++s) {
      if (steps[s].kind != StepKind::compute) continue;
      const Computation& computation = program.schedule.computation(steps[s]);
      if (!recorded(computation)) continue;
      if (computation.kind == ComputationKind::optimizer) optimizer = s;
      const bool goes_on = last && last->name == computation.name && last->kind == computation.kind;
      last = &computation;
      if (!goes_on) items.push_back({rank, computation.name, computation.kind, {}, 0, never, 0, 0});
      extend(items.back(), s);
    }
    for (const StepExchange& exchange : program.exchanges) {
      if (exchange.first == exchange.last) continue;
      StepItem item{
          rank, exchange.name, {}, exchange.group.ranks, exchange.elements * element, never, 0, 0};
      for (std::uint32_t s = exchange.first; s < exchange.last; ++s) extend(item, s);
      item.behind = exchange.first > optimizer;
      items.push_back(std::move(item));
    }
  }
  std::erase_if(items, [](const StepItem& item) { return item.begin == never; });
  return items;
}

JoinedStepItems join(const std::vector<StepItem>& predicted, const Timeline& recording) {
  int ranks = 0;
  for (const StepItem& item : predicted) ranks = std::max(ranks, item.rank + 1);
  if (recording.ranks != ranks) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("expected a recording of {} ranks, found one of {}", ranks, recording.ranks));
  }
  const auto all_recorded = recorded_items(recording);
  std::vector<LastStep> steps;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& own = all_recorded[static_cast<std::size_t>(rank)];
    if (std::ranges::none_of(own, [](const Recorded& its) { return is_optimizer(its.item); })) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("expected a recording of a training step, found none on rank {}", rank));
    }
    steps.emplace_back(own);
  }
  // The numbers of items of each key, before the optimizer and behind it.
  using Place = std::tuple<int, Key, bool>;
  std::map<Place, std::size_t> number, next;
  for (const StepItem& item : predicted) ++number[{item.rank, key_of(item), item.behind}];
  // Items of a key in the order in which they begin, as they are recorded.
  std::vector<std::size_t> order(predicted.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return predicted[i].begin; });

  JoinedStepItems joined;
  std::vector<std::uint32_t> kept;
  std::vector<std::pair<std::size_t, JoinedItem>> found;
  for (const std::size_t i : order) {
    const StepItem& item = predicted[i];
    const Place place{item.rank, key_of(item), item.behind};
    const auto at = steps[static_cast<std::size_t>(item.rank)].at(key_of(item), item.behind,
                                                                  next[place]++, number[place]);
    if (!at) {
      joined.missing.push_back(item);
      continue;
    }
    const Recorded& its = all_recorded[static_cast<std::size_t>(item.rank)][*at];
    found.push_back({i, {item, its.item}});
    kept.insert(kept.end(), its.events.begin(), its.events.end());
  }
  if (found.empty())
    throw Error(ErrorCode::invalid_argument, "expected the recording of this step, found another");
  std::ranges::sort(found, {}, [](const auto& its) { return its.first; });
  std::int64_t first[2] = {never, never}, last[2] = {0, std::numeric_limits<std::int64_t>::min()};
  for (auto& [i, item] : found) {
    const StepItem* const both[] = {&item.predicted, &item.measured};
    for (int side = 0; side < 2; ++side) {
      first[side] = std::min(first[side], both[side]->begin);
      last[side] = std::max(last[side], both[side]->end);
    }
    joined.items.push_back(std::move(item));
  }
  joined.predicted_ns = last[0] - first[0];
  joined.measured_ns = last[1] - first[1];
  joined.measured = recording;
  joined.measured.events.clear();
  std::ranges::sort(kept);
  std::map<std::uint32_t, std::uint32_t> place_of;  // of the recording's events
  for (const std::uint32_t e : kept) {
    place_of[e] = static_cast<std::uint32_t>(joined.measured.events.size());
    joined.measured.events.push_back(recording.events[e]);
  }
  for (JoinedItem& item : joined.items) item.measured.last = place_of.at(item.measured.last);
  move_origin(joined, first[1]);
  for (const JoinedItem& item : joined.items) {
    joined.ends.push_back(
        {item.measured.last, item.predicted.last, item.measured.end - item.predicted.end});
  }
  return joined;
}

}  // namespace baton::transformer
