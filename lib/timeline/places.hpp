#pragma once
/// The contents of a buffer, by their places in the collective's whole vector.

#include <cstdint>
#include <map>
#include <vector>

namespace baton::timing {

/// `length` elements whose places are place, place + 1, …
struct Run {
  static constexpr std::int64_t unknown = -1;

  std::int64_t place = unknown;
  std::int64_t length = 0;
};
using Runs = std::vector<Run>;

/// Appends a run; extends the last run if it continues there.
void append(Runs& runs, Run run);
/// The runs of `first`; where they are unknown, those of `second`. Both have equal lengths.
Runs either(const Runs& first, const Runs& second);

/// A buffer's contents; unknown at first.
class Places {
 public:
  void write(std::int64_t offset, Run run);
  /// Appends the contents of [offset, offset + length).
  void read(std::int64_t offset, std::int64_t length, Runs& out) const;
  /// The known contents, in order of offsets.
  const std::map<std::int64_t, Run>& runs() const { return runs_; }

 private:
  void split(std::int64_t offset);
  std::map<std::int64_t, Run> runs_;  // by offset, without overlap
};

}  // namespace baton::timing
