#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "baton/error.hpp"
#include "clock.hpp"
#include "part.hpp"

namespace baton::tracing {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

/// The correction of each part's times to rank 0's.
std::vector<Correction> corrections(const std::vector<Part>& parts, bool force) {
  std::map<int, Correction> of_clock{{0, {}}};
  for (const Part& part : parts) {
    if (part.rank != part.clock || part.clock == 0) continue;
    if (part.before && part.after) {
      of_clock[part.clock] = {*part.before, *part.after};
    } else if (part.before && force) {
      of_clock[part.clock] = {*part.before, *part.before};
    }
  }
  std::vector<Correction> corrections;
  for (const Part& part : parts) {
    const auto found = of_clock.find(part.clock);
    if (found == of_clock.end() && !force) {
      refuse(fmt::format(
          "expected the clock of rank {} ({}) to have been compared with that of rank 0 before and "
          "after the recording, found that it was not; --force takes its times as they are",
          part.rank, part.host_name));
    }
    corrections.push_back(found == of_clock.end() ? Correction() : found->second);
  }
  return corrections;
}

void check_same_recording(const std::vector<Part>& parts) {
  if (parts.empty()) refuse("expected the recording of at least one rank, found none");
  std::vector<int> ranks;
  for (const Part& part : parts) {
    if (part.ranks != parts[0].ranks) {
      refuse(fmt::format("expected parts of one recording, found one of {} ranks and one of {}",
                         parts[0].ranks, part.ranks));
    }
    ranks.push_back(part.rank);
  }
  std::sort(ranks.begin(), ranks.end());
  if (ranks.back() >= parts[0].ranks)
    refuse(fmt::format("expected ranks below {}, found {}", parts[0].ranks, ranks.back()));
  const auto twice = std::adjacent_find(ranks.begin(), ranks.end());
  if (twice != ranks.end())
    refuse(fmt::format("expected one part of each rank, found two of rank {}", *twice));
}

/// A group in the parts of all its ranks.
struct CommonGroup {
  const Part::Group* group = nullptr;
  std::map<const Part*, std::uint32_t> place;  // of each part's rank in the group
};

/// A call while its ranks' plans are being found: the part and plan of each rank, by its place in
/// the group. Ranks without a part are missing: a part of a large recording needs memory for
/// itself.
struct Call {
  std::uint32_t group = 0;  // in Merger::groups_
  std::map<std::uint32_t, std::pair<const Part*, std::uint32_t>> plans;
  std::int64_t first = 0;  // when it began
};

// Of ranks without a part: empty schedules (256 MB), and mentions of them in calls (64 MB).
constexpr std::size_t most_missing = 1 << 20, most_mentioned = 1 << 24;

class Merger {
 public:
  Merger(std::vector<Part> parts, bool force)
      : parts_(std::move(parts)), corrections_(corrections(parts_, force)) {}

  Timeline merge() {
    timeline_.kind = TimelineKind::measured;
    timeline_.ranks = parts_[0].ranks;
    describe_hosts();
    find_groups();
    for (std::size_t p = 0; p < parts_.size(); ++p) find_calls(p);
    describe_calls();
    for (std::size_t p = 0; p < parts_.size(); ++p) add_events(p);
    finish(timeline_);
    return std::move(timeline_);
  }

 private:
  void describe_hosts() {
    std::vector<int> hosts(static_cast<std::size_t>(timeline_.ranks), 0);
    timeline_.dropped.assign(hosts.size(), 0);
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const Part& part = parts_[p];
      const auto rank = static_cast<std::size_t>(part.rank),
                 host = static_cast<std::size_t>(part.host);
      hosts[rank] = part.host;
      if (timeline_.host_names.size() <= host) timeline_.host_names.resize(host + 1);
      timeline_.host_names[host] = part.host_name;
      timeline_.dropped[rank] = part.dropped;
      timeline_.clock_error = std::max(timeline_.clock_error, corrections_[p].error());
    }
    if (timeline_.host_names.size() > 1) timeline_.hosts = std::move(hosts);
    if (std::count(timeline_.dropped.begin(), timeline_.dropped.end(), 0) == timeline_.ranks)
      timeline_.dropped.clear();
  }

  /// Numbers groups in their order, the same group in several parts once.
  void find_groups() {
    std::map<Part::Group, std::uint32_t> numbers;
    for (const Part& part : parts_)
      for (const Part::Group& group : part.groups) numbers.try_emplace(group);
    for (auto& [group, number] : numbers) {
      number = static_cast<std::uint32_t>(groups_.size());
      groups_.emplace_back();
    }
    for (const Part& part : parts_) {
      auto& its = group_of_[&part];
      for (const Part::Group& group : part.groups) {
        its.push_back(numbers.at(group));
        CommonGroup& common = groups_[its.back()];
        common.group = &group;
        const auto member = std::ranges::find(group.members, part.rank);
        if (member != group.members.end())
          common.place[&part] = static_cast<std::uint32_t>(member - group.members.begin());
      }
    }
  }
  std::uint32_t group_of(const Part& part, const Part::Record& record) const {
    return group_of_.at(&part)[part.plans[record.plan].group];
  }

  void find_calls(std::size_t p) {
    const Part& part = parts_[p];
    for (const Part::Record& record : part.records) {
      const std::uint32_t group = group_of(part, record);
      auto [call, fresh] = calls_.try_emplace({group, record.sequence});
      const std::int64_t posted = corrections_[p](record.posted);
      if (fresh) {
        call->second.group = group;
        call->second.first = posted;
      }
      call->second.first = std::min(call->second.first, posted);
      const auto& place = groups_[group].place;
      if (const auto own = place.find(&part); own != place.end())
        call->second.plans[own->second] = {&part, record.plan};
    }
  }

  void describe_calls() {
    std::vector<std::pair<std::int64_t, Key>> order;
    for (const auto& [key, call] : calls_) order.emplace_back(call.first, key);
    std::sort(order.begin(), order.end());
    for (const auto& [first, key] : order) {
      place_[key] = static_cast<std::uint32_t>(timeline_.operations.size());
      timeline_.operations.push_back(operation(calls_.at(key)));
    }
  }

  [[noreturn]] void refuse_missing() const {
    refuse(fmt::format("expected the parts of more ranks, found those of {} of {}", parts_.size(),
                       timeline_.ranks));
  }

  TimedOperation operation(const Call& call) {
    TimedOperation operation;
    const Schedule::Header* known = nullptr;
    for (const auto& [rank, its] : call.plans) {
      const auto& [part, number] = its;
      const Part::Plan& plan = part->plans[number];
      const std::int64_t bytes = std::max(operation.bytes, plan.what.bytes);
      operation = plan.what;
      operation.bytes = bytes;
      known = &plan.schedule.header();
    }
    const std::vector<int>& members = groups_[call.group].group->members;
    const bool all = static_cast<int>(members.size()) == timeline_.ranks &&
                     std::is_sorted(members.begin(), members.end());
    if (!all) {
      mentioned_ += members.size() - call.plans.size();
      if (mentioned_ > most_mentioned) refuse_missing();
      operation.ranks = members;
    }
    auto& schedules = schedules_[{call.group, call.plans}];
    if (!schedules) {
      missing_ += members.size() - call.plans.size();
      if (missing_ > most_missing) refuse_missing();
      auto made = std::make_shared<std::vector<Schedule>>();
      for (std::uint32_t r = 0; r < members.size(); ++r) {
        const auto its = call.plans.find(r);
        Schedule::Header header = *known;
        header.rank = static_cast<int>(r);
        made->push_back(its == call.plans.end()
                            ? Schedule(header, {}, {})
                            : its->second.first->plans[its->second.second].schedule);
      }
      schedules = std::move(made);
    }
    operation.schedules = schedules;
    return operation;
  }

  void add_events(std::size_t p) {
    const Part& part = parts_[p];
    const Correction& correct = corrections_[p];
    for (const Part::Record& record : part.records) {
      const Part::Plan& plan = part.plans[record.plan];
      Event event;
      event.operation = place_.at({group_of(part, record), record.sequence});
      event.step = record.step;
      event.rank = part.rank;
      const Step& step = plan.schedule.steps()[record.step];
      event.kind = step.kind;
      event.lane = step.lane;
      if (step.message()) event.peer = timeline_.operations[event.operation].rank_of(step.peer);
      event.bytes = plan.schedule.length(step) * static_cast<std::int64_t>(plan.what.element_bytes);
      event.posted = correct(record.posted);
      event.start = correct(record.start);
      event.end = correct(record.end);
      timeline_.events.push_back(event);
    }
  }

  using Key = std::pair<std::uint32_t, std::uint32_t>;  // group and sequence

  std::vector<Part> parts_;
  std::vector<Correction> corrections_;
  Timeline timeline_;
  std::vector<CommonGroup> groups_;
  std::map<const Part*, std::vector<std::uint32_t>> group_of_;  // of each of its groups
  std::map<Key, Call> calls_;
  std::map<Key, std::uint32_t> place_;
  std::map<std::pair<std::uint32_t, decltype(Call::plans)>,
           std::shared_ptr<const std::vector<Schedule>>>
      schedules_;
  std::size_t missing_ = 0, mentioned_ = 0;  // ranks without a part
};

}  // namespace

Timeline merged(std::vector<Part> parts, bool force) {
  check_same_recording(parts);
  return Merger(std::move(parts), force).merge();
}

}  // namespace baton::tracing
