#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "part.hpp"

namespace baton::tracing {

/// This machine's monotonic clock, in ns.
inline std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The times of one step of a run (see Event); 0 for times not reached.
struct Moments {
  std::int64_t posted = 0, start = 0, end = 0;
};

/// The recording of one rank: a ring of the latest events of its runs, and the descriptions of
/// their plans. The ring is allocated once; its memory is touched as it fills. For any thread.
class Recorder {
 public:
  /// Keeps the last `events` events.
  explicit Recorder(std::size_t events);

  /// A group of ranks whose collectives are recorded; its members are ranks of the timeline. Groups
  /// of the same members are numbered in order of creation, so that ranks agree on the numbers.
  std::uint32_t add_group(std::vector<int> members);
  /// The messages of one tag from one rank of the timeline to another, in a communicator whose
  /// group is `group`: a group of these two, whose number both find alike.
  std::uint32_t add_channel(std::uint32_t group, int sender, int receiver, int tag);
  /// Describes the runs of a plan. take() calls `schedule(plan)`. The recorder may forget a plan
  /// earlier if nobody else holds it and no event refers to it.
  std::uint32_t add_plan(std::uint32_t group, TimedOperation what, std::shared_ptr<const void> plan,
                         std::function<Schedule(const void*)> schedule);
  /// Adds the steps of a complete run; steps[i] is step i's.
  void add_run(std::uint32_t plan, std::uint32_t sequence, std::span<const Moments> steps);

  /// Everything recorded so far, as rank `rank` of `ranks`. Afterwards the recorder has only groups
  /// and plans.
  Part take(int rank, int ranks);

 private:
  struct Planned {
    std::uint32_t group;
    TimedOperation what;
    std::shared_ptr<const void> plan;
    std::function<Schedule(const void*)> schedule;
  };
  void forget_unused();

  std::mutex mutex_;
  std::size_t room_;
  std::unique_ptr<Part::Record[]> ring_;
  std::uint64_t recorded_ = 0;
  std::vector<Part::Group> groups_;
  std::vector<Planned> plans_;
  std::size_t forget_at_ = 1024;  // plans
};

}  // namespace baton::tracing
