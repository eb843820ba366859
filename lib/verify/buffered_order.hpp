#pragma once

#include <cstdint>
#include <vector>

#include "program.hpp"

namespace baton::proving {

/// An order in which all steps can run if the transport buffers sends.
class BufferedOrder {
 public:
  /// Sorts the steps by dependencies and channels (lane, peer, direction). A send waits for the
  /// send before it on its channel, and for the receive that makes room: the one `slots` before its
  /// own. A receive waits for its send, and for the receive before it. Finds cycles. Returns
  /// whether there is none. All messages must have partners; `slots` is at least 1.
  bool sort(const Program& program, int slots, Findings& findings);

  /// All steps, each after everything that it waits for.
  const std::vector<std::uint32_t>& sequence() const { return sequence_; }
  /// The longest path in messages, any number of which a rank sends and receives at a time.
  std::int64_t rounds() const { return rounds_; }

 private:
  void find_channels(const Program& program, int slots);
  void report_circle(const Program& program, Findings& findings);
  template <class Visit>
  void for_waits(const Program& program, std::uint32_t step, const Visit& visit) const;

  std::vector<std::uint32_t> previous_;  // on the channel
  std::vector<std::uint32_t> room_;      // of a send: the receive that frees its slot
  std::vector<std::uint32_t> waits_;     // number of steps that are still to come before a step
  std::vector<std::uint32_t> begin_, waiting_;  // the steps that wait for each step
  std::vector<std::int32_t> time_;
  std::vector<std::uint32_t> sequence_;
  std::int64_t rounds_ = 0;
};

}  // namespace baton::proving
