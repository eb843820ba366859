#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "baton/error.hpp"
#include "baton/schedule/passes.hpp"
#include "levels.hpp"
#include "slots.hpp"

namespace baton {

using namespace scheduling;

namespace {

std::vector<Computation> computations_of(const Schedule& schedule) {
  return {schedule.computations().begin(), schedule.computations().end()};
}

std::span<Region> regions_of(Regions& regions, const Step& step) {
  return std::span(regions).subspan(step.first, step.parts[0] + step.parts[1] + step.parts[2]);
}

/// The input of the pass.
struct Unfused {
  Schedule schedule;
  std::vector<bool> fills;  ///< whether a step fills a slot of its own, which the next empties;
                            ///< empty: slots and dependencies are to stay as they are
};

/// The schedule with a slot for each message that passes through one, so that no message waits for
/// a slot to be free. One that lists dependencies of its own, or uses slots in another way, stays
/// as it is.
Unfused with_own_slots(Schedule schedule) {
  if (schedule.header().slots == 0 || !slots_in_pairs(schedule)) return {std::move(schedule), {}};
  std::vector<Step> steps(schedule.steps().begin(), schedule.steps().end());
  Regions regions(schedule.regions().begin(), schedule.regions().end());
  if (Schedule(schedule.header(), steps, regions, computations_of(schedule)).dependencies() !=
      schedule.dependencies()) {
    return {std::move(schedule), {}};
  }
  Schedule::Header header = without_slots(schedule.header());
  std::vector<bool> fills(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!writes_slot(schedule, steps[i])) continue;
    fills[i] = true;
    for (const std::size_t side : {i, i + 1}) {
      for (Region& region : regions_of(regions, steps[side])) {
        if (region.buffer == Buffer::slot) region.offset = header.slots;
      }
    }
    header.slots += schedule.length(steps[i]);
  }
  return {
      Schedule(std::move(header), std::move(steps), std::move(regions), computations_of(schedule)),
      std::move(fills)};
}

/// Hands out slots by number, the lowest that is free.
class SlotNumbers {
 public:
  std::size_t take(std::int64_t length) {
    if (free_.empty()) {
      free_.insert(longest_.size());
      longest_.push_back(0);
    }
    const std::size_t number = free_.extract(free_.begin()).value();
    longest_[number] = std::max(longest_[number], length);
    return number;
  }
  /// The slot is free from the next call of settle() on.
  void release(std::size_t number) { released_.push_back(number); }
  void settle() {
    free_.insert(released_.begin(), released_.end());
    released_.clear();
  }
  /// Where each slot begins, and the end of all.
  std::vector<std::int64_t> places() const {
    std::vector<std::int64_t> places(longest_.size() + 1);
    std::partial_sum(longest_.begin(), longest_.end(), places.begin() + 1);
    return places;
  }

 private:
  std::vector<std::int64_t> longest_;
  std::set<std::size_t> free_;
  std::vector<std::size_t> released_;
};

/// The level of each step of a rank's schedule.
using OwnLevels = std::vector<std::int32_t>;

OwnLevels own_levels(const Schedule& schedule, const Levels& levels) {
  OwnLevels own;
  for (std::size_t i = 0; i < schedule.steps().size(); ++i)
    own.push_back(levels.of(schedule.rank(), i));
  return own;
}

/// The same for a schedule of the messages of `known`, which is the one that `levels` counts.
OwnLevels own_levels(const Schedule& schedule, const Schedule& known, const Levels& levels) {
  std::map<std::tuple<StepKind, int, int>, std::deque<std::int32_t>> channels;
  const auto channel = [&](const Step& step) -> auto& {
    return channels[{step.kind, step.peer, step.lane}];
  };
  for (std::size_t i = 0; i < known.steps().size(); ++i) {
    const Step& step = known.steps()[i];
    if (step.message()) channel(step).push_back(levels.of(known.rank(), i));
  }
  const auto refuse = [&](std::size_t i, const char* expected, const char* found) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("step {} of rank {}: expected {}, found {}", i, schedule.rank(),
                            expected, found));
  };
  OwnLevels own;
  for (std::size_t i = 0; i < schedule.steps().size(); ++i) {
    const Step& step = schedule.steps()[i];
    std::int32_t level = 0;
    for (const std::uint32_t d : schedule.dependencies(i)) level = std::max(level, own[d]);
    if (step.message()) {
      auto& levels_left = channel(step);
      if (levels_left.empty()) refuse(i, "a message that the others know of", "one more");
      if (levels_left.front() <= level)
        refuse(i, "a message that waits for earlier fused groups only",
               "one that waits for its own");
      level = levels_left.front();
      levels_left.pop_front();
    }
    own.push_back(level);
  }
  for (const auto& [its, left] : channels)
    if (!left.empty()) refuse(own.size(), "a message that the others know of", "none");
  return own;
}

/// The steps in the order of the fused groups, other steps between them.
std::vector<std::uint32_t> order_of(const Schedule& schedule, const OwnLevels& levels) {
  const auto steps = schedule.steps();
  const auto place = [&](std::uint32_t i) {
    const bool message = steps[i].message();
    return std::tuple(levels[i], !message, message ? steps[i].lane : 0, i);
  };
  std::vector<std::uint32_t> order(steps.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, place);
  return order;
}

Dependencies reordered(const Dependencies& dependencies, std::span<const std::uint32_t> order) {
  std::vector<std::uint32_t> place(order.size());
  for (std::uint32_t k = 0; k < order.size(); ++k) place[order[k]] = k;
  Dependencies out;
  for (const std::uint32_t i : order) {
    const auto first = static_cast<std::ptrdiff_t>(out.list.size());
    for (const std::uint32_t d : dependencies.of(i)) out.list.push_back(place[d]);
    std::sort(out.list.begin() + first, out.list.end());
    out.end_step();
  }
  return out;
}

Schedule fuse(const Unfused& unfused, const OwnLevels& levels) {
  const Schedule& schedule = unfused.schedule;
  const bool own_slots = !unfused.fills.empty();
  const auto order = order_of(schedule, levels);
  std::vector<Step> steps;
  Regions regions;
  SlotNumbers slots;
  std::vector<std::size_t> slot(order.size());  // of each step that fills or empties one
  std::pair<std::int32_t, bool> stretch;
  for (const std::uint32_t i : order) {
    const Step& from = schedule.steps()[i];
    const std::pair here(levels[i], from.message());
    // Messages of a fused group are under way together: no other may fill the slot that one
    // empties.
    if (std::exchange(stretch, here) != here) slots.settle();
    const bool fills = own_slots && unfused.fills[i];
    const bool empties = own_slots && i > 0 && unfused.fills[i - 1];
    if (fills) slot[i] = slot[i + 1] = slots.take(schedule.length(from));
    if (empties) slots.release(slot[i]);

    Step& step = steps.emplace_back(from);
    step.round = std::max(here.first - 1, 0);
    step.first = static_cast<std::uint32_t>(regions.size());
    for (int k = 0; k < operands(from.kind); ++k) {
      for (Region region : schedule.operand(from, k)) {
        if ((fills || empties) && region.buffer == Buffer::slot) {
          region.offset = static_cast<std::int64_t>(slot[i]);
        }
        regions.push_back(region);
      }
    }
  }
  if (!own_slots) {
    return Schedule(schedule.header(), std::move(steps), std::move(regions),
                    reordered(schedule.dependencies(), order), computations_of(schedule),
                    schedule.assumed_overlaps());
  }
  const std::vector<std::int64_t> places = slots.places();
  for (Region& region : regions) {
    if (region.buffer == Buffer::slot)
      region.offset = places[static_cast<std::size_t>(region.offset)];
  }
  Schedule::Header header = schedule.header();
  header.slots = places.back();
  return Schedule(std::move(header), std::move(steps), std::move(regions),
                  computations_of(schedule));
}

}  // namespace

Schedule fused(const std::function<Schedule(int)>& schedule_of, int rank, int window) {
  Unfused own = with_own_slots(schedule_of(rank));
  Levels levels;
  for (int r = 0; r < own.schedule.size(); ++r) {
    levels.add(r == rank ? own.schedule : with_own_slots(schedule_of(r)).schedule);
  }
  levels.count(window);
  return fuse(own, own_levels(own.schedule, levels));
}

Schedule fused(const std::function<Schedule(int)>& schedule_of, const Schedule& own, int window) {
  Levels levels;
  std::optional<Schedule> known;
  for (int r = 0; r < own.size(); ++r) {
    Schedule schedule = with_own_slots(schedule_of(r)).schedule;
    levels.add(schedule);
    if (r == own.rank()) known = std::move(schedule);
  }
  levels.count(window);
  const Unfused mine = with_own_slots(own);
  return fuse(mine, own_levels(mine.schedule, *known, levels));
}

std::vector<Schedule> fused(std::span<const Schedule> schedules, int window) {
  std::vector<Unfused> unfused;
  Levels levels;
  for (const Schedule& schedule : schedules) {
    unfused.push_back(with_own_slots(schedule));
    levels.add(unfused.back().schedule);
  }
  levels.count(window);
  std::vector<Schedule> out;
  for (const Unfused& one : unfused) out.push_back(fuse(one, own_levels(one.schedule, levels)));
  return out;
}

}  // namespace baton
