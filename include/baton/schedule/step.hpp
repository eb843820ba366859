#pragma once
/// A schedule: everything one rank does in a collective, as plain data.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "baton/schedule/computation.hpp"
#include "baton/schedule/problem.hpp"
#include "baton/schedule/region.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// Kinds of steps, with their operands.
enum class StepKind : std::uint8_t {
  send,     ///< operand(0) to peer
  recv,     ///< from peer into operand(0)
  fold,     ///< operand(0) = operand(1) (+) operand(2), left and right as given
  copy,     ///< operand(0) = operand(1)
  divide,   ///< operand(0) is divided by the number of ranks (avg)
  compute,  ///< a computation reads operand(1) and writes operand(0), whose lengths are unrelated;
            ///< either may be empty
};
std::string_view name(StepKind kind);  ///< "send" and so on

/// Which ranges of Schedule::regions() a step touches: operands lie one after the other from
/// `first`; the k-th has `parts[k]` regions.
struct Step {
  StepKind kind = StepKind::copy;
  std::uint8_t lane =
      0;  ///< an independent strand; messages are first-in-first-out per lane and peer
  std::int32_t peer = -1;  ///< of a send or recv; of a compute: in Schedule::computations()
  std::int32_t round = 0;  ///< a label for readers; nothing relies on it
  std::uint32_t first = 0;
  std::uint32_t parts[3] = {0, 0, 0};

  /// Whether the step is a send or a recv.
  bool message() const { return kind == StepKind::send || kind == StepKind::recv; }
  bool operator==(const Step&) const = default;
};

/// Number of operands that a step of this kind has; the first is written, unless it is a send.
/// All have one length, except a computation's.
int operands(StepKind kind);

/// For each step the earlier steps that it waits for.
struct Dependencies {
  std::vector<std::uint32_t> begin{
      0};                           ///< step i waits for list[begin[i]] … list[begin[i + 1] - 1]
  std::vector<std::uint32_t> list;  ///< ascending within a step

  std::size_t size() const { return begin.size() - 1; }  ///< steps
  /// The steps that step i waits for.
  std::span<const std::uint32_t> of(std::size_t i) const {
    return std::span(list).subspan(begin[i], begin[i + 1] - begin[i]);
  }
  /// Ends the list of one step; the next one begins.
  void end_step() { begin.push_back(static_cast<std::uint32_t>(list.size())); }
  bool operator==(const Dependencies&) const = default;
};

/// One rank's part of a collective, or of a program, which also computes: steps in program order,
/// the regions they touch, and for each step the earlier steps that it waits for. Immutable; made
/// by ScheduleBuilder, by a pass, or by parse(). Comparable, printable, and complete: it needs no
/// other rank's schedule to be understood.
class Schedule {
 public:
  /// Facts about the schedule and the sizes of its buffers.
  struct Header {
    Collective collective = Collective::all_reduce;
    std::string algorithm;
    int size = 1;
    int rank = 0;
    int root = 0;
    std::int64_t input = 0;    ///< elements of the input buffer
    std::int64_t output = 0;   ///< elements of the output buffer
    std::int64_t scratch = 0;  ///< elements of scratch
    std::int64_t slots = 0;    ///< elements of all slots together
    bool in_place = false;
    bool operator==(const Header&) const = default;
  };

  /// Takes a schedule's parts as they are. Throws Error(invalid_argument) where they are no
  /// schedule at all: a peer that is no other rank, operands that are missing or of unequal length,
  /// a dependency that is not an earlier step, a computation that is not listed, touches a slot or
  /// does not wait for the one before it. Whether it is a correct one is for verify() to say.
  /// `assumed_overlaps` comes with the dependencies of another schedule.
  Schedule(Header header, std::vector<Step> steps, std::vector<Region> regions,
           Dependencies dependencies, std::vector<Computation> computations = {},
           std::int64_t assumed_overlaps = 0);
  /// As above, with dependencies inferred: a step waits for the earlier steps that touch an
  /// overlapping region, one of the two writing, unless a step between them hides them by a write.
  /// A computation also waits for the computation before it.
  Schedule(Header header, std::vector<Step> steps, std::vector<Region> regions,
           std::vector<Computation> computations = {});

  const Header& header() const { return header_; }              ///< collective and sizes
  Collective collective() const { return header_.collective; }  ///< of the header
  int size() const { return header_.size; }                     ///< ranks
  int rank() const { return header_.rank; }                     ///< whose part this is

  std::span<const Step> steps() const { return steps_; }        ///< in program order
  std::span<const Region> regions() const { return regions_; }  ///< operands of all steps
  /// Of all compute steps, each once, in the order of their first steps.
  std::span<const Computation> computations() const { return computations_; }
  /// Of a compute step.
  const Computation& computation(const Step& step) const {
    return computations_[static_cast<std::size_t>(step.peer)];
  }
  /// The k-th operand of a step.
  std::span<const Region> operand(const Step& step, int k) const;
  /// Elements in the k-th operand.
  std::int64_t length(const Step& step, int k = 0) const;
  /// Indices of the steps that step i waits for, ascending.
  std::span<const std::uint32_t> dependencies(std::size_t i) const { return dependencies_.of(i); }
  /// Of all steps.
  const Dependencies& dependencies() const { return dependencies_; }
  /// Pairs of accesses that were ordered without proof that they overlap.
  std::int64_t assumed_overlaps() const { return assumed_; }

  int lanes() const;              ///< 1 + the largest lane
  int rounds() const;             ///< 1 + the largest label
  std::int64_t sent() const;      ///< elements sent
  std::int64_t received() const;  ///< elements received
  std::int64_t messages() const;  ///< messages sent
  std::int64_t computed() const;  ///< ns of all computations

  bool operator==(const Schedule&) const = default;

 private:
  Header header_;
  std::vector<Step> steps_;
  std::vector<Region> regions_;
  Dependencies dependencies_;
  std::vector<Computation> computations_;
  std::int64_t assumed_ = 0;
};

/// Where two schedules first differ, as a sentence; nothing if they are equal.
std::optional<std::string> difference(const Schedule& a, const Schedule& b);

}  // namespace baton
#pragma GCC visibility pop
