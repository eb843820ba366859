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

/// The times of one step of a run (see Event); zeros until it has come so far.
struct Moments {
  std::int64_t posted = 0, start = 0, end = 0;
};

/// What one rank records: the latest events of its runs, in a ring that is taken once, and what
/// their plans are. Memory is touched as the ring fills. For any thread.
class Recorder {
 public:
  /// Keeps the last `events` events.
  explicit Recorder(std::size_t events);

  /// A group of ranks whose collectives are recorded: its members as ranks of the timeline. Its
  /// number is how many groups of the same members came before, so that ranks agree on which is
  /// which.
  std::uint32_t add_group(std::vector<int> members);
  /// What the runs of a plan are part of. `schedule(plan)` is called when the recording is taken;
  /// what nobody else holds and no event refers to may be forgotten before.
  std::uint32_t add_plan(std::uint32_t group, TimedOperation what, std::shared_ptr<const void> plan,
                         std::function<Schedule(const void*)> schedule);
  /// The steps of a run that are complete; steps[i] is step i's.
  void add_run(std::uint32_t plan, std::uint32_t sequence, std::span<const Moments> steps);

  /// Everything recorded so far, as rank `rank` of `ranks`; the recorder is empty afterwards, but
  /// for groups and plans.
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
