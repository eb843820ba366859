#pragma once

#include <cstdint>
#include <vector>

#include "program.hpp"

namespace baton::proving {

/// An order of all steps if each rank posts its messages in fused groups, one after another.
class FusedGroups {
 public:
  /// Runs all ranks. A fused group is posted when the previous one is complete, and complete when
  /// both sides of all its messages are posted. Finds messages that wait for others of their fused
  /// group, and fused groups that wait for one another. Returns whether there are none. All
  /// messages must have partners.
  bool sort(const Program& program, Findings& findings);

  /// All steps but receives, each after everything that it waits for. A send also stands for its
  /// receive.
  const std::vector<std::uint32_t>& sequence() const { return sequence_; }
  /// The longest path, in fused groups.
  std::int64_t rounds() const { return rounds_; }

 private:
  struct Rank {
    std::uint32_t begin = 0, end = 0;  // the posted fused group
    std::uint32_t open = 0;            // its incomplete messages
    std::int64_t posted = 0;           // fused groups on the longest path before it
    std::int64_t complete = 0;         // … and including it, for its complete messages
  };

  void advance(const Program& program, std::uint32_t rank);
  void complete(const Program& program, std::uint32_t message);
  void report_circle(const Program& program, std::uint32_t rank, Findings& findings) const;
  std::uint32_t open_message(const Program& program, std::uint32_t rank) const;

  std::vector<Rank> ranks_;
  std::vector<bool> posted_;          // messages
  std::vector<std::uint32_t> ready_;  // ranks whose fused group is complete
  std::vector<std::uint32_t> sequence_;
  std::int64_t rounds_ = 0;
};

}  // namespace baton::proving
