#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "case_runner.hpp"
#include "cli/common/world.hpp"
#include "reference.hpp"

namespace baton::cli::measure {

/// What checks have found, as all ranks know it.
struct CheckResult {
  std::int64_t checks = 0;  ///< results that were checked, over all ranks
  std::int64_t wrong = 0;   ///< elements, over all ranks; and ranks that differ from rank 0 in bits
  std::uint64_t hash = 0;   ///< of this rank's last result
};

/// Checks results in a case's buffers, whoever computed them. All functions but fills() are
/// collective.
class Checker {
 public:
  Checker(World& world, const Case& subject, CaseBuffers& buffers)
      : world_(world), subject_(subject), buffers_(buffers) {}

  /// The inputs to check with: exact ones first, then, where the reduction rounds, random ones.
  std::vector<Fill> fills() const;
  /// Fills the input; the result that it must lead to, by the transport's own collective where it
  /// has one and `by_built_in` allows it.
  Reference reference(Fill fill, bool by_built_in = true);
  /// Runs once on fresh buffers and compares every rank's result. A barrier is checked by clocks,
  /// where ranks share one.
  void check(CheckResult& found, const std::function<void()>& run, const Reference& reference);
  /// The result still has the bits of the last check.
  void recheck(CheckResult& found);

 private:
  void check_barrier(CheckResult& found, const std::function<void()>& run);
  bool shared_result() const;

  World& world_;
  const Case& subject_;
  CaseBuffers& buffers_;
};

}  // namespace baton::cli::measure
