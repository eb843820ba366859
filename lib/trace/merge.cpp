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

/// A call while its ranks' plans are being found: the part and plan of each rank.
struct Call {
  const Part::Group* group = nullptr;
  std::vector<std::pair<const Part*, std::uint32_t>> plans;  // by rank in the group; null: missing
  std::int64_t first = 0;                                    // when it began
};

class Merger {
 public:
  Merger(std::vector<Part> parts, bool force)
      : parts_(std::move(parts)), corrections_(corrections(parts_, force)) {}

  Timeline merge() {
    timeline_.kind = TimelineKind::measured;
    timeline_.ranks = parts_[0].ranks;
    describe_hosts();
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

  void find_calls(std::size_t p) {
    const Part& part = parts_[p];
    for (const Part::Record& record : part.records) {
      const Part::Group& group = part.groups[part.plans[record.plan].group];
      auto [call, fresh] = calls_.try_emplace({group, record.sequence});
      const std::int64_t posted = corrections_[p](record.posted);
      if (fresh) {
        call->second.group = &call->first.first;
        call->second.plans.resize(group.members.size());
        call->second.first = posted;
      }
      call->second.first = std::min(call->second.first, posted);
      const auto member = std::find(group.members.begin(), group.members.end(), part.rank);
      if (member == group.members.end()) continue;
      call->second.plans[static_cast<std::size_t>(member - group.members.begin())] = {&part,
                                                                                      record.plan};
    }
  }

  void describe_calls() {
    std::vector<std::pair<std::int64_t, const Key*>> order;
    for (const auto& [key, call] : calls_) order.emplace_back(call.first, &key);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first, *a.second) < std::pair(b.first, *b.second);
    });
    for (const auto& [first, key] : order) {
      place_[key] = static_cast<std::uint32_t>(timeline_.operations.size());
      timeline_.operations.push_back(operation(calls_.at(*key)));
    }
  }

  TimedOperation operation(const Call& call) {
    TimedOperation operation;
    const Schedule::Header* known = nullptr;
    for (const auto& [part, plan] : call.plans) {
      if (!part) continue;
      const Part::Plan& its = part->plans[plan];
      const std::int64_t bytes = std::max(operation.bytes, its.what.bytes);
      operation = its.what;
      operation.bytes = bytes;
      known = &its.schedule.header();
    }
    const bool all = static_cast<int>(call.group->members.size()) == timeline_.ranks &&
                     std::is_sorted(call.group->members.begin(), call.group->members.end());
    if (!all) operation.ranks = call.group->members;
    auto& schedules = schedules_[call.plans];
    if (!schedules) {
      auto made = std::make_shared<std::vector<Schedule>>();
      for (std::size_t r = 0; r < call.plans.size(); ++r) {
        const auto& [part, plan] = call.plans[r];
        Schedule::Header header = *known;
        header.rank = static_cast<int>(r);
        made->push_back(part ? part->plans[plan].schedule : Schedule(header, {}, {}));
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
      const auto call = calls_.find({part.groups[plan.group], record.sequence});
      Event event;
      event.operation = place_.at(&call->first);
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

  using Key = std::pair<Part::Group, std::uint32_t>;

  std::vector<Part> parts_;
  std::vector<Correction> corrections_;
  Timeline timeline_;
  std::map<Key, Call> calls_;
  std::map<const Key*, std::uint32_t> place_;
  std::map<std::vector<std::pair<const Part*, std::uint32_t>>,
           std::shared_ptr<const std::vector<Schedule>>>
      schedules_;
};

}  // namespace

Timeline merged(std::vector<Part> parts, bool force) {
  check_same_recording(parts);
  return Merger(std::move(parts), force).merge();
}

}  // namespace baton::tracing
