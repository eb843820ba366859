#pragma once
/// From schedule to schedule.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "baton/schedule/step.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// The same collective with every message cut, in packed order, into pieces of at most `segment`
/// elements, folds and copies with it, and dependencies inferred again, so that pieces overlap.
/// segment <= 0 returns the schedule unchanged.
Schedule segmented(const Schedule& schedule, std::int64_t segment);

/// The same collective with every message contiguous: what is not is packed into a slot before its
/// send, or unpacked from one after its receive. For transports that send contiguous memory only.
Schedule packed(const Schedule& schedule);

/// Whether each slot is filled by one step, whole, and read by the next one alone, as
/// ScheduleBuilder hands slots out. Schedules from elsewhere may use slots in their own way.
bool slots_in_pairs(const Schedule& schedule);

/// The same collective with no region crossing one of the given offsets (ascending) of the input or
/// output: for buffers that are lists of tensors, laid end to end.
Schedule split_at(const Schedule& schedule, std::span<const std::int64_t> input_offsets,
                  std::span<const std::int64_t> output_offsets);

/// One rank's schedule with its messages in fused groups, for transports that know neither tags nor
/// single messages, as NCCL's. A *fused group* is a run of messages of equal round label, with no
/// other step between them. A rank posts its fused groups one after another, each when the one
/// before it is complete and the steps between them are done. The messages of a fused group are
/// under way together; it is complete when all of them are. Messages from one rank to another
/// arrive in the order of posting, whatever their lanes. Run in this way,
///
/// - the fused groups of all ranks come to an end: both ends of a message have it in the fused
///   group of the same number, and a fused group waits for lower numbers only;
/// - the k-th message that a rank posts to another is the k-th that the other expects: by fused
///   group, then lane, then program order;
/// - no message waits for another of its fused group, nor for a step after it;
/// - the longest chain of fused groups is as long as the longest chain of messages that wait for
///   one another, and no cut into fused groups has a shorter one. Reuse of slots is no reason to
///   wait: where one step fills a slot and the next empties it, each message of a fused group has
///   a slot of its own.
///
/// The round label of a message is the number of its fused group; that of another step is the
/// number of the fused group before it (0 if there is none). The header (except `slots`), the
/// messages, and the left and right of each fold stay the same, so results are bit for bit equal.
///
/// `window` bounds the messages of one channel in a fused group; 0: any number. Pieces of a
/// segmented schedule overlap on their way from rank to rank only with a window: 1 makes a chain a
/// pipeline.
///
/// The numbers depend on all ranks: `schedule_of(r)` is rank r's schedule. Time is linear in all
/// steps and dependencies, about as long as their generation; memory is 50 bytes a step. Throws
/// Error(invalid_argument) where a message has no partner, or steps wait for one another in a
/// circle.
Schedule fused(const std::function<Schedule(int rank)>& schedule_of, int rank, int window = 0);
/// The same for a rank that runs `own` where all others count on schedule_of(own.rank()). Both have
/// the same messages, but may differ in other steps, regions and dependencies, as when only this
/// rank's input and output are one buffer. Throws Error(invalid_argument) where the messages
/// differ, or one waits for another of its fused group or a later one.
Schedule fused(const std::function<Schedule(int rank)>& schedule_of, const Schedule& own,
               int window = 0);
/// The same for all ranks at once; schedules[r] is rank r's.
std::vector<Schedule> fused(std::span<const Schedule> schedules, int window = 0);

}  // namespace baton
#pragma GCC visibility pop
