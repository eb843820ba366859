#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "baton/schedule/step.hpp"
#include "matching.hpp"

namespace baton::scheduling {

/// How many messages must follow one another up to each step, over all ranks.
///
/// The level of a message is 1 + the highest level among the messages that either of its ends waits
/// for. The level of any other step is the highest among the messages that it waits for itself, 0
/// if there are none.
class Levels {
 public:
  /// Appends the schedule of the next rank, rank 0 first. Throws Error(invalid_argument) where it
  /// is another rank's.
  void add(const Schedule& schedule);
  /// Counts, when all ranks are there. With a window, each message also waits for the one that many
  /// before it in its channel; 0: none. Throws Error(invalid_argument) where a rank is missing, a
  /// message has no other end, or it waits for itself.
  ///
  /// Time is linear in steps and dependencies of all ranks; memory is about 40 bytes a step.
  void count(int window);

  std::int32_t of(int rank, std::size_t step) const {
    return levels_[matching_.first(rank) + step] - known;
  }

 private:
  struct Frame {
    std::uint32_t node;  // a message is named by its send
    std::uint32_t side;  // the step whose waits are looked at: the node, or its other end
    std::uint32_t next;  // of these waits
    std::int32_t level;  // the highest of them
  };

  void chain(int window);
  void visit(std::uint32_t step);
  std::uint32_t node_of(std::uint32_t step) const {
    return receives_[step] ? matching_.partner(step) : step;
  }
  std::string phrase(std::uint32_t step) const;

  static constexpr std::int32_t unknown = 0, entered = 1, known = 2;  // known + level

  int size_ = 0;
  Matching matching_;
  std::vector<std::uint32_t> wait_end_{0}, waits_;
  std::vector<std::uint32_t> previous_;  // of sends: the one that the window makes them wait for
  std::vector<bool> receives_;
  std::vector<std::int32_t> levels_;
  std::vector<Frame> stack_;
};

}  // namespace baton::scheduling
