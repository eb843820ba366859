#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cli/common/case.hpp"
#include "values.hpp"

namespace baton::cli::measure {

/// The right contents of one rank's output after a case. Shares no code with the library's kernels,
/// schedules and transports.
class Reference {
 public:
  /// Computed from the inputs of all ranks, one rank after the other.
  Reference(const Case& subject, const Values& values, int rank);
  /// As somebody else has computed it, from exact values.
  Reference(const Case& subject, std::vector<std::byte> expected, int rank);

  /// Elements of `output` that are wrong: whose bits differ, or, of values that round, that are
  /// farther from the sum or product than its P - 1 folds can have taken them (the bound of
  /// lib/memory/README.md, which holds for every order of the folds).
  std::int64_t wrong(const void* output) const;

 private:
  template <class T>
  void reduce(const Case& subject, const Values& values, int rank);
  void move(const Case& subject, const Values& values, int rank);
  void move_tensor(const Case& subject, const Values& values, int rank);
  template <class T>
  std::int64_t far(const void* output) const;

  Datatype type_;
  std::int64_t count_;               // elements that are compared
  std::vector<std::byte> expected_;  // bits, or
  std::vector<double> middle_;       // of values that round, the result in double and
  std::vector<float> tolerance_;     // the most that it may be off
};

}  // namespace baton::cli::measure
