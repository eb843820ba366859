#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "baton/schedule/step.hpp"

namespace baton {

/// segmented() for the schedules of many ranks: those that differ in rank and peers only are cut
/// once. For any number of threads.
class SegmentedRanks {
 public:
  /// `segment` is of elements, as for segmented().
  explicit SegmentedRanks(std::int64_t segment) : segment_(segment) {}

  /// segmented(schedule, segment)
  Schedule of(const Schedule& schedule);

 private:
  /// A schedule, and what it was cut into, with the number of a message among the schedule's in
  /// place of its peer.
  struct Cut {
    Schedule schedule, pieces;
  };
  std::shared_ptr<const Cut> cut_of(const Schedule& schedule);

  std::int64_t segment_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Cut>> cuts_;
};

}  // namespace baton
