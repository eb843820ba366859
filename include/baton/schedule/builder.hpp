#pragma once
/// Writes a schedule in program order, as one would explain it on a whiteboard.

#include <cstdint>
#include <memory>
#include <span>

#include "baton/export.hpp"
#include "baton/schedule/step.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// A buffer cut into chunks. Indices are cyclic: chunk[-1] is the last.
class Chunks {
 public:
  int size() const { return size_; }  ///< chunks
  /// Chunk i, for any i.
  Region operator[](std::int64_t i) const;
  /// Chunks first, first + 1, …, n of them, wrapping around; neighbours in memory become one
  /// region.
  Regions range(std::int64_t first, std::int64_t n) const;
  /// Elements in chunk i.
  std::int64_t count(std::int64_t i) const;

 private:
  friend class ScheduleBuilder;
  Buffer buffer_ = Buffer::work;
  std::int64_t base_ = 0;  // where the buffer's first chunk would begin
  int size_ = 1;
  std::int64_t total_ = 0;  // elements in all, where chunks are near-equal
  std::int64_t even_ = -1;  // elements of each chunk, where they are equal by definition
  std::int64_t rows_ = 1;
  std::shared_ptr<const Blocks> blocks_;
};

/// On which side of a fold the operand that arrived stands.
enum class Side : std::uint8_t { left, right };

/// Appends steps to one rank's schedule.
///
/// Steps are written in program order. Dependencies are inferred by build(): a
/// step waits for the earlier steps of this rank that touch an overlapping region, one of the two
/// writing. Empty messages, folds and copies are dropped, on both sides of a message alike, since
/// both sides know its length; a copy onto itself is dropped as well.
///
/// `work` is what a reduction computes in: the input until a region is first written, and from then
/// on the place where results gather: the output, or scratch on ranks that have no output for the
/// region (reduce away from the root; reduce_scatter outside the own block).
///
/// In place, input and output are one buffer here too: the accessors return the same regions.
class ScheduleBuilder {
 public:
  /// An empty schedule for `problem.rank`.
  explicit ScheduleBuilder(const Problem& problem);
  ~ScheduleBuilder();
  ScheduleBuilder(const ScheduleBuilder&) = delete;
  ScheduleBuilder& operator=(const ScheduleBuilder&) = delete;

  // --- regions -----------------------------------------------------------------------------

  Region input() const;   ///< the whole input of this rank
  Region output() const;  ///< the whole output of this rank
  Region work() const;    ///< the whole vector that is reduced (or broadcast)
  Chunks input_blocks()
      const;  ///< the input's blocks, one per rank (scatter, reduce_scatter, all_to_all)
  Chunks output_blocks()
      const;  ///< the output's blocks, one per rank (gather, all_gather, all_to_all)
  /// The work buffer cut into n near-equal chunks, the larger first. For reduce_scatter, whose
  /// chunks are the given blocks, n must be the number of ranks.
  Chunks chunks(int n) const;
  /// A region cut into n near-equal chunks, the larger first. The region must be contiguous.
  Chunks chunks(const Region& region, int n) const;
  /// New scratch of `count` elements; its contents are undefined until written.
  Region scratch(std::int64_t count);

  // --- steps -------------------------------------------------------------------------------

  void send(int peer, const Region& region);    ///< one message
  void send(int peer, const Regions& regions);  ///< one message, in packed order
  void recv(int peer, const Region& region);    ///< one message
  void recv(int peer, const Regions& regions);  ///< one message, in packed order
  /// region = message (+) region, or region (+) message if the message stands on the right. By
  /// default the message stands on the side of its sender: left if peer < rank. A receive into a
  /// slot, which may be posted at once, and a fold.
  void recv_reduce(int peer, const Region& region);
  /// The same with the message on the given side.
  void recv_reduce(int peer, const Region& region, Side message);
  /// The same for several regions: one message.
  void recv_reduce(int peer, const Regions& regions);
  /// The same for several regions, with the message on the given side.
  void recv_reduce(int peer, const Regions& regions, Side message);
  /// into = message (+) own, or own (+) message. `into` may be `own`.
  void recv_reduce(int peer, const Region& into, const Region& own, Side message);
  /// The same for several regions of equal length in all.
  void recv_reduce(int peer, const Regions& into, const Regions& own, Side message);
  /// As recv, but through a slot, and copied when `region` is free: for regions whose old contents
  /// are still to be sent.
  void recv_late(int peer, const Region& region);
  /// The same for several regions: one message.
  void recv_late(int peer, const Regions& regions);

  /// into = left (+) right; all of one length. `into` may be one of the two.
  void fold(const Region& into, const Region& left, const Region& right);
  void copy(const Region& to, const Region& from);    ///< both of one length
  void copy(const Regions& to, const Regions& from);  ///< in packed order; both of one length
  /// Says that the region now holds its whole reduction; for avg, appends the division. Every
  /// reducing algorithm says it exactly once for each element of each rank's result, where it is
  /// cheapest: before finished chunks are passed on.
  void reduced(const Region& region);
  /// The same for several regions.
  void reduced(const Regions& regions);
  /// The rank computes for `computation.ns`, after the computation before it. It reads and writes
  /// these regions, and so waits for receives, and sends wait for it.
  void compute(const Computation& computation, const Regions& reads = {},
               const Regions& writes = {});

  /// Appends the steps of `part`, the schedule of this rank in a collective of some of the ranks:
  /// its rank i is `ranks[i]` here, its buffers are `input` and `output` in packed order (a buffer
  /// that it has not: none), and its scratch is new scratch. What it finishes is divided by the
  /// number of ranks here. Its lanes count from the current one. So schedules are put together from
  /// others. In a program, its slots are new scratch, too: operations do not share them.
  void embed(const Schedule& part, std::span<const int> ranks, const Regions& input,
             const Regions& output);

  /// The following steps belong to this lane (0 to 255; communicators run lanes 0 to 31).
  void lane(int lane);
  /// Ends a round: labels the steps that follow with the next number. Folds, copies and divisions
  /// behind the last round belong to that round.
  void end_round();
  int round() const;  ///< label of the steps that follow

  /// The schedule. For a reduction whose result is the work buffer, the part of the result that no
  /// step wrote is copied from the input first (one rank alone; the root of a scan). Names the
  /// algorithm. The builder is spent afterwards.
  Schedule build(std::string algorithm = {});

 private:
  struct BATON_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace baton
#pragma GCC visibility pop
