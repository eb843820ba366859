#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "baton/schedule/step.hpp"

namespace baton::simulating {

inline constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

/// Where a step is on its way.
enum class Stage : std::uint8_t {
  idle,
  posted,
  here,       ///< a receive whose message is there before it is posted
  announced,  ///< a receive whose sender waits for it to be posted
  answer,     ///< a receive that is posted and to be answered
  take,       ///< a receive whose message is there and to be taken
  send_data,  ///< a send that has been answered
  sent,       ///< a send that has left
  done,
};

/// A step of any rank, numbered through all of them, with the state of its simulation.
struct FlatStep {
  std::int64_t bytes = 0;             ///< of a message, or of one operand
  std::int64_t moment = 0;            ///< of a send: when its last byte is there at the earliest
  std::uint32_t partner = none;       ///< the other side of a message
  std::uint32_t stream = none;        ///< of a message
  std::uint32_t first_dependent = 0;  ///< up to the next step's
  std::uint32_t waits = 0;            ///< steps that are not complete yet
  std::uint32_t next = none;          ///< in a queue of its rank
  StepKind kind = StepKind::copy;
  Stage stage = Stage::idle;
  bool gated = false;  ///< waits for the call before this one, too

  bool message() const { return kind == StepKind::send || kind == StepKind::recv; }
};

/// The messages of one rank, lane, peer and direction, in program order.
struct Stream {
  std::uint32_t first = 0, last = 0;  ///< in Program::messages
  std::uint32_t next = 0;             ///< to be posted
  std::int32_t rank = 0, peer = 0;
  std::uint16_t in_flight = 0;
  std::uint8_t lane = 0;
  bool sends = false;
  bool across = false;            ///< to another host
  std::int64_t last_arrival = 0;  ///< of those sent: messages do not overtake
};

/// All ranks' schedules in flat arrays, with the state of their simulation.
struct Program {
  std::vector<FlatStep> steps;  ///< and one more, the end of the last one's dependents
  std::vector<std::uint32_t> dependents;
  std::vector<Stream> streams;  ///< by rank, then by first message
  std::vector<std::uint32_t> messages;
  std::vector<std::uint32_t> first_step, first_stream;  ///< of each rank, and the end

  int ranks() const { return static_cast<int>(first_step.size()) - 1; }
  int rank_of(std::uint32_t step) const;
  /// "step 3 (recv of 8 B from rank 1, lane 0)"
  std::string phrase(std::uint32_t step) const;
};

/// A rank's schedule in the same form, numbered from 0; ranks are flattened one by one, and joined.
class FlatRank {
 public:
  /// The schedule as a plan has it: messages contiguous; followed so many times. The first steps of
  /// each later call wait for one step more than they depend on.
  void load(const Schedule& schedule, std::size_t element_bytes, int calls = 1);
  /// What a Program takes for it.
  std::int64_t bytes() const;

 private:
  friend class ProgramBuilder;
  std::vector<FlatStep> steps_;
  std::vector<std::uint32_t> dependents_, messages_;
  std::vector<Stream> streams_;
  std::vector<std::uint32_t> stream_of_;  // scratch: by peer, lane and direction
};

/// Joins ranks in rank order.
class ProgramBuilder {
 public:
  void reserve(const FlatRank& sample, int ranks);
  void add(const FlatRank& rank);
  /// Matches messages. Throws Error(invalid_argument) where one has no partner of its length.
  Program finish();

 private:
  void match();
  Program program_;
};

}  // namespace baton::simulating
