#pragma once
/// The computation whose result each step of a program carries or works on.

#include <cstdint>
#include <vector>

#include "steps.hpp"

namespace baton::timing {

class Results {
 public:
  /// Takes nothing where nobody computes.
  explicit Results(const Steps& steps);

  /// Of a compute step itself; null: the step touches no result.
  const Computation* of(std::uint32_t s) const { return of_.empty() ? nullptr : of_[s]; }

 private:
  const Computation* carried(const Steps& steps, std::uint32_t s) const;
  std::vector<const Computation*> of_;  // by step
};

}  // namespace baton::timing
