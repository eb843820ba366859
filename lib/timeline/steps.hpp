#pragma once
/// Steps and ranks of operations, by number.

#include <cstdint>
#include <span>
#include <vector>

#include "../schedule/matching.hpp"
#include "baton/schedule.hpp"
#include "baton/timeline.hpp"

namespace baton::timing {

/// All ranks' steps in one numbering: rank after rank, in program order.
class Steps {
 public:
  static constexpr std::uint32_t none = scheduling::none;

  /// `schedules` are those of all ranks, in rank order. They outlive this.
  explicit Steps(std::span<const Schedule> schedules);

  std::uint32_t count() const { return matching_.count(); }
  std::uint32_t at(int rank, std::uint32_t step) const { return matching_.first(rank) + step; }
  int rank(std::uint32_t s) const { return rank_[s]; }
  std::uint32_t index(std::uint32_t s) const { return s - matching_.first(rank(s)); }
  const Schedule& schedule(std::uint32_t s) const {
    return schedules_[static_cast<std::size_t>(rank(s))];
  }
  const Step& step(std::uint32_t s) const { return schedule(s).steps()[index(s)]; }
  /// The other end of a message, or none.
  std::uint32_t partner(std::uint32_t s) const { return matching_.partner(s); }
  /// An order in which the steps can run: each after its dependencies, a receive after its send.
  /// Omits steps that can never run.
  std::vector<std::uint32_t> order() const;

 private:
  std::span<const Schedule> schedules_;
  std::vector<std::int32_t> rank_;
  scheduling::Matching matching_;
};

/// The ranks of a timeline as its operations number them. The timeline outlives this.
class OwnRanks {
 public:
  explicit OwnRanks(const Timeline& timeline);
  /// The event's rank in its operation; -1 if no schedule of the operation has its step.
  int of(const Event& event) const;

 private:
  const Timeline& timeline_;
  std::vector<std::vector<int>> own_;  // by operation and the timeline's rank; -1: none
};

}  // namespace baton::timing
