#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "cli/common/world.hpp"
#include "trace/clock.hpp"

namespace baton::cli::simulate {

/// Lets all ranks begin at one time, by clocks that were compared: a barrier would let them go one
/// after the other. All functions are collective.
class CommonStart {
 public:
  explicit CommonStart(World& world);

  /// Seconds from the common start of `body` on all ranks to the end of the last.
  double timed(const std::function<void()>& body);
  /// Bound on how far a rank's start is off rank 0's because of its clock, in seconds; of when it
  /// was made.
  double error() const { return error_; }

 private:
  World& world_;
  std::unique_ptr<Transport> transport_;
  std::int64_t ahead_ = 0;  // of this rank's clock, ns
  double error_ = 0;
};

}  // namespace baton::cli::simulate
