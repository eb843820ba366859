#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "reference.hpp"
#include "trial.hpp"
#include "world.hpp"

namespace baton::cli {

/// What checks have found, as all ranks know it.
struct Verdict {
  std::int64_t checks = 0;  ///< results that were checked, over all ranks
  std::int64_t wrong = 0;   ///< elements, over all ranks; and ranks that differ from rank 0 in bits
  std::uint64_t hash = 0;   ///< of this rank's last result
};

/// Checks runs on a trial's buffers, whoever makes them. All functions but fills() are collective.
class Checker {
 public:
  Checker(World& world, const Exercise& exercise, TrialBuffers& trial)
      : world_(world), exercise_(exercise), trial_(trial) {}

  /// The inputs to check with: exact ones first, then, where the reduction rounds, random ones.
  std::vector<Fill> fills() const;
  /// Fills the trial's input; what must come of it, by the built-in where there is one and it can.
  Reference reference(Fill fill);
  /// Runs once on fresh buffers and compares every rank's result. A barrier is checked by clocks,
  /// where ranks share one.
  void check(Verdict& verdict, const std::function<void()>& run, const Reference& reference);
  /// The trial's result still has the bits of the last check.
  void recheck(Verdict& verdict);

 private:
  void check_barrier(Verdict& verdict, const std::function<void()>& run);
  bool shared_result() const;

  World& world_;
  const Exercise& exercise_;
  TrialBuffers& trial_;
};

}  // namespace baton::cli
