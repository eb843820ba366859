#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "program.hpp"

namespace baton::proving {

/// "step 3 of rank 1 (…) waits for …, which waits for the first"
std::string describe_circle(const Program& program, std::span<const std::uint32_t> steps);

/// An order in which all steps can run although every send waits for its receive.
class Order {
 public:
  /// Sorts the steps by dependencies, windows of one message per lane, peer and direction, and
  /// messages, which are complete only when both sides are posted. Finds cycles. Returns whether
  /// there is none. All messages must have partners.
  bool sort(const Program& program, Findings& findings);

  /// All steps but receives, each after everything that it waits for. A send also stands for its
  /// receive.
  const std::vector<std::uint32_t>& sequence() const { return sequence_; }
  /// Longest path in the one-port model, in messages; -1 if that model has a cycle.
  std::int64_t rounds() const { return rounds_; }
  /// Longest path in messages if a rank can send and receive any number at once; -1 if rounds() is.
  std::int64_t depth() const { return depth_; }

 private:
  struct Frame {
    std::uint32_t entered;  // the step that the frame below waits for
    std::uint32_t side;     // the step whose waits are visited: the entered one, or its partner
    std::uint32_t next;     // the next of these waits
    std::int32_t time;      // when all its waits are over
  };

  void measure_depth(const Program& program);
  void chain_ports(const Program& program);    // one send and one receive at a time per rank
  void chain_windows(const Program& program);  // … and per lane and peer
  bool visit_all(const Program& program);
  bool visit(const Program& program, std::uint32_t step);

  std::vector<std::uint32_t> previous_;  // the message that must complete before a message
  std::vector<std::uint32_t> sequence_;
  std::vector<std::int32_t>
      finish_;  // one-port time, 0: not visited, -1: being visited; else 1 + time; then depth
  std::vector<Frame> stack_;
  std::vector<std::uint32_t> cycle_;
  std::int64_t rounds_ = 0, depth_ = 0;
};

}  // namespace baton::proving
