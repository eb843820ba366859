#pragma once
/// A collective, or a program, in time: one model of events for what is predicted and for what was
/// measured.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "baton/options.hpp"
#include "baton/schedule.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// One step of one rank in time, in nanoseconds from the timeline's origin; posted <= start <= end.
///
/// | kind   | posted                        | start                  | end                      |
/// |--------|-------------------------------|------------------------|--------------------------|
/// | send   | it is handed to the transport | the rank is free again | its buffer is free again |
/// | recv   | it is handed to the transport | the rank is free again | the message is there     |
/// | others | all it waits for is done      | work begins            | work is done             |
///
/// So a rank is at work from `posted` to `start` of a message and from `start` to `end` of other
/// steps. A message travels from `posted` of its send to `end` of its receive.
struct Event {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t operation = 0;  ///< in Timeline::operations
  std::uint32_t step = 0;       ///< in the schedule of `rank` in this operation
  std::int32_t rank = 0;        ///< of the timeline
  std::int32_t peer = -1;       ///< of the timeline; -1: the step is no message
  StepKind kind = StepKind::copy;
  std::uint8_t lane = 0;
  std::uint32_t chunk = none;  ///< in Timeline::chunks; set by finish()
  std::int64_t bytes = 0;      ///< of a message, or of one operand of another step; of a
                               ///< computation: 0
  std::int64_t posted = 0, start = 0, end = 0;

  /// Whether the step is a send or a recv.
  bool message() const { return kind == StepKind::send || kind == StepKind::recv; }
};

/// The owner of a timeline's events: one call of a collective.
struct TimedOperation {
  std::string name;        ///< "all_reduce", or the name that the caller gave
  Choice choice;           ///< algorithm, and bytes of a segment (0: not cut)
  std::string type, op;    ///< "f32", "sum"; empty where there is none
  std::int64_t bytes = 0;  ///< of the whole vector, as nccl-tests counts
  std::size_t element_bytes = 1;
  std::vector<int> ranks;  ///< the timeline's rank of each of its ranks; empty: the same
  /// The schedules that its ranks follow, in rank order.
  std::shared_ptr<const std::vector<Schedule>> schedules;

  /// The timeline's rank of a rank of this operation.
  int rank_of(int its_rank) const {
    return ranks.empty() ? its_rank : ranks[static_cast<std::size_t>(its_rank)];
  }
};

/// Data that messages carry and folds fold, by where it belongs: blocks by the rank whose input
/// they are cut from, or parts of a vector that all ranks have.
struct ChunkName {
  std::string text;      ///< "c3", "c2-c5", "1>4" (of an all_to_all: from whom to whom)
  int origin = 0;        ///< what to colour it by: the rank that it comes from, or its number
  bool reduced = false;  ///< the message is folded on arrival: "c3 +="
  /// Of a computation, or of data that it has written: the class to colour it by. Its name is the
  /// text.
  std::optional<ComputationKind> computation = {};
  bool operator==(const ChunkName&) const = default;
};

/// Which of the three a timeline is.
enum class TimelineKind : std::uint8_t {
  predicted,  ///< by a simulation
  measured,   ///< recorded by running ranks
  rounds,     ///< no times at all: round k of a schedule takes from k to k + 1 microseconds
};
std::string_view name(TimelineKind kind);  ///< "predicted" and so on

/// Events of all ranks, with what is needed to understand them.
struct Timeline {
  TimelineKind kind = TimelineKind::predicted;
  std::string title;       ///< one line; may be empty
  std::string parameters;  ///< of a prediction: the network's name and parameters, one line
  int ranks = 1;
  std::vector<int>
      hosts;  ///< of each rank, numbered in the order of their lowest ranks; empty: one
  std::vector<std::string> host_names;  ///< of each host; may be empty
  std::vector<TimedOperation> operations;
  std::vector<Event> events;  ///< by rank, then by `posted`
  std::vector<ChunkName> chunks;

  // The quality of a recording:
  std::int64_t clock_error =
      0;  ///< ns: bound on how far a host's clock is off rank 0's; 0: one clock
  std::int64_t early_arrivals = 0;     ///< messages that arrive before they were injected
  std::vector<std::uint64_t> dropped;  ///< events that each rank had no room for; empty: none

  /// The host of a rank, from 0.
  int host_of(int rank) const { return hosts.empty() ? 0 : hosts[static_cast<std::size_t>(rank)]; }
  /// Nanoseconds from the first event's `posted` to the last `end`; 0 without events.
  std::int64_t duration() const;
};

/// Puts events in order, from the first on (rounds: from 0), names chunks, counts early arrivals.
void finish(Timeline& timeline);

/// A message: indices of its two events.
struct TimedMessage {
  std::uint32_t send = 0, recv = 0;
};
/// Every message both of whose events are there, by operation, sender and step. The k-th send from
/// one rank to another in a lane of an operation is the k-th receive there.
std::vector<TimedMessage> messages_of(const Timeline& timeline);

/// The critical path: the chain of events that determined the time of the last event, in order, as
/// indices. Each event waited for the one before: a message for its sender, a step for one that it
/// depends on or for its rank to be free.
std::vector<std::uint32_t> critical_path(const Timeline& timeline);

/// The steps of schedules of all ranks with rounds in place of times. Throws
/// Error(invalid_argument) unless there is one for each rank.
Timeline rounds_of(std::shared_ptr<const std::vector<Schedule>> schedules,
                   std::size_t element_bytes);

/// The same steps in two timelines, such as a recording and its prediction.
struct JoinedStep {
  std::uint32_t first = 0, second = 0;  ///< indices of events
  std::int64_t difference = 0;          ///< ns: end in the first, minus end in the second
};
/// Joins operation `first_operation` of the first with `second_operation` of the second, step by
/// step; times count from each operation's own first event. Throws Error(invalid_argument) where
/// their schedules are not the same.
std::vector<JoinedStep> joined(const Timeline& first, std::uint32_t first_operation,
                               const Timeline& second, std::uint32_t second_operation);

/// Operation `operation` of a timeline alone, from its own first event on.
Timeline only(const Timeline& timeline, std::uint32_t operation);

}  // namespace baton
#pragma GCC visibility pop
