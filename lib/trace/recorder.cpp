#include "recorder.hpp"

#include <algorithm>
#include <utility>

namespace baton::tracing {
namespace {

constexpr std::uint32_t first_channel = 1u << 31;  // among the numbers of groups

}  // namespace

Recorder::Recorder(std::size_t events)
    : room_(std::max<std::size_t>(events, 1)), ring_(new Part::Record[room_]) {}

std::uint32_t Recorder::add_group(std::vector<int> members) {
  const std::lock_guard lock(mutex_);
  const auto same = std::count_if(groups_.begin(), groups_.end(), [&](const Part::Group& group) {
    return group.members == members && group.number < first_channel;
  });
  groups_.push_back({std::move(members), static_cast<std::uint32_t>(same)});
  return static_cast<std::uint32_t>(groups_.size() - 1);
}

std::uint32_t Recorder::add_channel(std::uint32_t group, int sender, int receiver, int tag) {
  const std::lock_guard lock(mutex_);
  std::uint32_t hash = 2166136261u;  // FNV-1a
  const auto add = [&](std::uint32_t value) { hash = (hash ^ value) * 16777619u; };
  for (const int member : groups_[group].members) add(static_cast<std::uint32_t>(member));
  add(groups_[group].number);
  add(static_cast<std::uint32_t>(tag));
  groups_.push_back({{sender, receiver}, first_channel | hash});
  return static_cast<std::uint32_t>(groups_.size() - 1);
}

std::uint32_t Recorder::add_plan(std::uint32_t group, TimedOperation what,
                                 std::shared_ptr<const void> plan,
                                 std::function<Schedule(const void*)> schedule) {
  const std::lock_guard lock(mutex_);
  if (plans_.size() == forget_at_) {
    forget_unused();
    forget_at_ *= 2;
  }
  plans_.push_back({group, std::move(what), std::move(plan), std::move(schedule)});
  return static_cast<std::uint32_t>(plans_.size() - 1);
}

void Recorder::forget_unused() {
  std::vector<bool> used(plans_.size(), false);
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(recorded_, room_); ++i)
    used[ring_[i].plan] = true;
  for (std::size_t p = 0; p < plans_.size(); ++p) {
    if (!used[p] && plans_[p].plan.use_count() == 1) plans_[p] = {};
  }
}

void Recorder::add_run(std::uint32_t plan, std::uint32_t sequence, std::span<const Moments> steps) {
  const std::lock_guard lock(mutex_);
  std::size_t at = recorded_ % room_;
  for (std::uint32_t step = 0; step < steps.size(); ++step) {
    const Moments& moments = steps[step];
    if (moments.end == 0) continue;  // not reached
    ring_[at] = {moments.posted, moments.start, moments.end, plan, sequence, step};
    if (++at == room_) at = 0;
    ++recorded_;
  }
}

Part Recorder::take(int rank, int ranks) {
  const std::lock_guard lock(mutex_);
  Part part;
  part.rank = rank;
  part.ranks = ranks;
  part.groups = groups_;
  const std::uint64_t kept = std::min<std::uint64_t>(recorded_, room_);
  part.dropped = recorded_ - kept;
  part.records.reserve(kept);
  // Omits plans without events.
  std::vector<std::uint32_t> place(plans_.size(), Event::none);
  for (std::uint64_t i = part.dropped; i < recorded_; ++i) {
    Part::Record record = ring_[i % room_];
    std::uint32_t& plan = place[record.plan];
    if (plan == Event::none) {
      plan = static_cast<std::uint32_t>(part.plans.size());
      const Planned& planned = plans_[record.plan];
      part.plans.push_back({planned.group, planned.what, planned.schedule(planned.plan.get())});
    }
    record.plan = plan;
    part.records.push_back(record);
  }
  recorded_ = 0;
  return part;
}

Schedule schedule_of(const Computation& computation) {
  Schedule::Header header;
  header.collective = Collective::program;
  Step step;
  step.kind = StepKind::compute;
  step.peer = 0;
  return {std::move(header), {step}, {}, {computation}};
}

}  // namespace baton::tracing
