#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../schedule/matching.hpp"
#include "baton/schedule/step.hpp"

namespace baton::simulating {

using scheduling::none;

/// The common part of ranks whose schedules differ only in their peers: steps, numbered from 0 in
/// program order, and channels.
struct Shape {
  struct Step {
    std::int64_t bytes = 0;             ///< of a message, or of one operand; ns of a computation
    std::uint32_t channel = none;       ///< of a message
    std::uint32_t place = 0;            ///< of a message in its channel
    std::uint32_t first_dependent = 0;  ///< ends at the next step's
    std::uint32_t waits = 0;            ///< number of its dependencies
    StepKind kind = StepKind::copy;
    bool gated = false;     ///< also waits for the previous call
    bool advances = false;  ///< of a computation: messages advance meanwhile

    bool message() const { return kind == StepKind::send || kind == StepKind::recv; }
    bool operator==(const Step&) const = default;
  };
  std::vector<Step> steps;  ///< and one more, the end of the last one's dependents
  std::vector<std::uint32_t> dependents;
  std::vector<scheduling::Channel> channels;  ///< in the order of their first messages
  std::vector<std::uint32_t> messages;        ///< their steps, channel after channel

  std::uint32_t size() const { return static_cast<std::uint32_t>(steps.size()) - 1; }
  std::int64_t bytes() const;
  bool operator==(const Shape&) const = default;
};

/// A rank: its shape, and the peer of each channel.
struct FlatRank {
  std::shared_ptr<const Shape> shape;
  std::vector<std::int32_t> peers;
};

/// A schedule with contiguous messages, repeated so many times. The first steps of each later call
/// wait for one step more than their dependencies.
FlatRank flattened(const Schedule& schedule, std::size_t element_bytes, int calls = 1);

/// All ranks, with their messages matched.
struct Program {
  struct Channel {
    const std::uint32_t* partners = nullptr;  ///< the peer's step of each message in turn
    std::int32_t peer = 0;
  };
  struct Rank {
    std::shared_ptr<const Shape> shape;
    std::uint64_t first_step = 0, first_channel = 0;  ///< among all ranks'
  };
  std::vector<Rank> ranks;
  std::vector<Channel> channels;
  std::uint64_t steps = 0, messages = 0;

  int size() const { return static_cast<int>(ranks.size()); }
  const Rank& rank(int r) const { return ranks[static_cast<std::size_t>(r)]; }
  const Channel& channel(int r, std::uint32_t channel) const {
    return channels[rank(r).first_channel + channel];
  }
  void add(const FlatRank& rank);  ///< in rank order
  /// Matches messages. Throws Error(invalid_argument) if one has no counterpart of its length.
  void match();
  /// For example "step 3 (recv of 8 B from rank 1, lane 0)".
  std::string phrase(int rank, std::uint32_t step) const;
};

}  // namespace baton::simulating
