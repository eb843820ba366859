#pragma once
/// A collective with its buffers and the result that it should have.

#include <cstdint>
#include <vector>

#include "baton/calls.hpp"
#include "baton/options.hpp"

namespace faults {

class Work {
 public:
  /// `block`: elements of a rank.
  Work(baton::Collective collective, int rank, int size, int block);
  /// Refers to this object's buffers.
  baton::Call call();
  bool right() const { return output_ == expected_; }

 private:
  std::int32_t sum_of(int first, int last, int i) const;
  std::int32_t expected(int i) const;

  baton::Collective collective_;
  int rank_, size_, block_, root_;
  std::vector<std::int32_t> input_, output_, expected_;
};

/// A collective with an algorithm and a segment.
struct Subject {
  baton::Collective collective;
  baton::Choice choice;
  bool hierarchical;
};
/// Each of this library's algorithms, uncut and in segments.
std::vector<Subject> subjects();

}  // namespace faults
