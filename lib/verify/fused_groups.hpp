#pragma once

#include <cstdint>
#include <vector>

#include "program.hpp"

namespace baton::proving {

/// An order in which all steps take place when each rank posts its messages in fused groups,
/// one after another.
class FusedGroups {
 public:
  /// Runs all ranks: a fused group is posted when the one before it is complete, and complete when
  /// all its messages are posted on both sides. Finds messages that wait for others of their fused
  /// group, and fused groups that wait for one another. Returns whether there are none of either.
  /// All messages must have partners.
  bool sort(const Program& program, Findings& findings);

  /// All steps but receives, each after all that it waits for; a send stands for its receive too.
  const std::vector<std::uint32_t>& sequence() const { return sequence_; }
  /// The longest path, in fused groups.
  std::int64_t rounds() const { return rounds_; }

 private:
  struct Rank {
    std::uint32_t begin = 0, end = 0;  // the fused group that is posted
    std::uint32_t open = 0;            // messages of it that are not complete
    std::int64_t posted = 0;           // fused groups on the longest path before it
    std::int64_t complete = 0;         // … with it, as far as its messages are complete
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
