#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "baton/schedule/step.hpp"

namespace baton::simulating {

inline constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

/// What ranks have in common whose schedules are alike but for the peers: steps, numbered from 0 in
/// program order, and streams, the messages of one lane, peer and direction in program order.
struct Shape {
  struct Step {
    std::int64_t bytes = 0;             ///< of a message, or of one operand
    std::uint32_t stream = none;        ///< of a message
    std::uint32_t place = 0;            ///< of a message in its stream
    std::uint32_t first_dependent = 0;  ///< up to the next step's
    std::uint32_t waits = 0;            ///< steps that it waits for
    StepKind kind = StepKind::copy;
    bool gated = false;  ///< waits for the call before this one, too

    bool message() const { return kind == StepKind::send || kind == StepKind::recv; }
    bool operator==(const Step&) const = default;
  };
  struct Stream {
    std::uint32_t first = 0, last = 0;  ///< in `messages`
    std::uint8_t lane = 0;
    bool sends = false;
    std::uint32_t count() const { return last - first; }
    bool operator==(const Stream&) const = default;
  };
  std::vector<Step> steps;  ///< and one more, the end of the last one's dependents
  std::vector<std::uint32_t> dependents;
  std::vector<Stream> streams;  ///< in the order of their first messages
  std::vector<std::uint32_t> messages;

  std::uint32_t size() const { return static_cast<std::uint32_t>(steps.size()) - 1; }
  std::int64_t bytes() const;
  bool operator==(const Shape&) const = default;
};

/// A rank: its shape, and the peer of each stream.
struct FlatRank {
  std::shared_ptr<const Shape> shape;
  std::vector<std::int32_t> peers;
};

/// The schedule as a plan has it: messages contiguous; followed so many times. The first steps of
/// each later call wait for one step more than they depend on.
FlatRank flattened(const Schedule& schedule, std::size_t element_bytes, int calls = 1);

/// All ranks, with their messages matched.
struct Program {
  struct Stream {
    const std::uint32_t* partners = nullptr;  ///< the peer's steps, of each message in turn
    std::int32_t peer = 0;
  };
  struct Rank {
    std::shared_ptr<const Shape> shape;
    std::uint64_t first_step = 0, first_stream = 0;  ///< of all ranks'
  };
  std::vector<Rank> ranks;
  std::vector<Stream> streams;
  std::uint64_t steps = 0, messages = 0;

  int size() const { return static_cast<int>(ranks.size()); }
  const Rank& rank(int r) const { return ranks[static_cast<std::size_t>(r)]; }
  const Stream& stream(int r, std::uint32_t stream) const {
    return streams[rank(r).first_stream + stream];
  }
  void add(const FlatRank& rank);  ///< in rank order
  /// Matches messages. Throws Error(invalid_argument) where one has no partner of its length.
  void match();
  /// "step 3 (recv of 8 B from rank 1, lane 0)"
  std::string phrase(int rank, std::uint32_t step) const;
};

}  // namespace baton::simulating
