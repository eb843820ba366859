#pragma once
/// Proves schedules: the second reader.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "baton/schedule.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// Why a set of schedules is not a correct collective.
enum class Flaw : std::uint8_t {
  unmatched,     ///< a message that nobody receives or sends, or of another length
  deadlock,      ///< a cycle, with synchronous sends and one message in flight per lane, peer,
                 ///< direction; or with the sends of VerifyOptions
  hazard,        ///< two steps touch the same elements, one writes, and nothing orders them
  bounds,        ///< a region outside its buffer
  undefined,     ///< an element is read that nobody has written, or is what a computation writes
  contribution,  ///< an element of the result lacks a contribution, has one twice, or a foreign one
  order,         ///< contributions are not in rank order although the operation does not commute
  clobbered,     ///< an input, or a part of the output that holds no result, was overwritten
  bytes,         ///< elements sent, received or of scratch differ from the documented formula
  rounds,        ///< the longest path differs from the documented formula, or there is none
  disagree,      ///< ranks end with different folds of one element, so not bit for bit equal
  fused_group,   ///< a message waits for another of its fused group (verify_fused)
};
std::string_view name(Flaw flaw);  ///< "deadlock" and so on

/// One flaw of one rank; rank or step is -1 where the flaw belongs to none.
struct Finding {
  Flaw flaw;
  int rank = -1;
  int step = -1;
  std::string sentence;  ///< names what was expected and what was found
};

/// Result of a check: proved if there are no findings.
struct Proof {
  std::vector<Finding> findings;  ///< empty: proved. At most one per kind of flaw and rank.
  /// Longest path in the one-port model (see Cost); -1 if none exists. With buffered sends: longest
  /// path in messages if ranks could send and receive any number at once.
  std::int64_t rounds = 0;
  std::int64_t messages = 0;  ///< of all ranks
  /// Whether the schedules are proved.
  bool holds() const { return findings.empty(); }
};

/// The transport that a proof assumes.
struct VerifyOptions {
  /// Messages of one lane, peer and direction that a transport holds between the ranks. 0: none,
  /// sends are synchronous: a send ends when its receive takes the message, so a proof holds on any
  /// transport. N: a send ends when the message is in the buffer, where there is room once the N-th
  /// receive before its own has ended. A proof for N holds for any larger number. NCCL holds up to
  /// 8 messages of one slot each.
  int buffered = 0;
};

/// Checks the schedules of all ranks (schedules[r] is rank r's) against what the collective
/// promises. `problems[r]` is rank r's. Exact for the given counts. Uses no dependency or overlap
/// code of the library. Of a program: messages, order and hazards only, as it has no promise.
/// Errors: invalid_argument if the numbers of ranks differ, options are out of range, or all
/// buffers together have more than 2^27 elements after division by the common divisor of all
/// counts.
Proof verify(std::span<const Schedule> schedules, std::span<const Problem> problems,
             const VerifyOptions& options = {});

/// As above, for messages that run in fused groups, one after another on each rank, as fused()
/// defines them and NCCL runs them. Messages from one rank to another match in the order of
/// posting, and a deadlock is a circle of fused groups. The schedules may come from fused() or from
/// elsewhere. Proof::rounds is the longest path in fused groups.
Proof verify_fused(std::span<const Schedule> schedules, std::span<const Problem> problems);

/// Generates the schedules of all ranks, checks them as above and against the algorithm's cost.
/// `segment` (elements, 0: none) cuts messages first; costs in rounds are checked only unsegmented.
Proof verify(const Algorithm& algorithm, std::span<const Problem> problems,
             std::int64_t segment = 0);

/// The problem of a set of schedules read from a file: collective, size, root, in place and counts
/// from their headers. Throws Error(invalid_argument) if they contradict each other.
std::vector<Problem> problems_of(std::span<const Schedule> schedules);

}  // namespace baton
#pragma GCC visibility pop
