#pragma once
/// From schedule to schedule.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "baton/export.hpp"
#include "baton/schedule/step.hpp"

namespace BATON_API baton {

/// The same collective with every message cut, in packed order, into pieces of at most `segment`
/// elements, folds and copies with it, and dependencies inferred again, so that pieces overlap.
/// segment <= 0 returns the schedule unchanged.
Schedule segmented(const Schedule& schedule, std::int64_t segment);

/// The same collective with every message contiguous: what is not is packed into a slot before its
/// send, or unpacked from one after its receive. For transports that send contiguous memory only.
Schedule packed(const Schedule& schedule);

/// The same collective with no region crossing one of the given offsets (ascending) of the input or
/// output: for buffers that are lists of tensors, laid end to end.
Schedule split_at(const Schedule& schedule, std::span<const std::int64_t> input_offsets,
                  std::span<const std::int64_t> output_offsets);

/// One rank's schedule in groups, for transports that know neither tags nor single messages, as
/// NCCL's: a *group* is a run of messages of equal round label, with no other step between. A rank
/// posts its groups one after another, each when the one before is complete and the steps between
/// are done; a group's messages are under way together, and it is complete when all are. What is
/// sent from one rank to another arrives in the order of posting, whatever its lane. So run,
///
/// - the groups of all ranks come to an end: they are numbered alike on both ends of each message,
///   and a group waits for groups of lower numbers only;
/// - the k-th message that a rank posts to another is the k-th that the other expects: by group,
///   then lane, then program order;
/// - no message waits for another of its group, nor for a step after it;
/// - the longest chain of groups has as many as the longest chain of messages that wait for one
///   another, and no grouping has fewer. Reuse of slots is no reason to wait: each message of a
///   group has one of its own, where slots are filled by one step and emptied by the next.
///
/// The round label of a message is the number of its group, that of another step the number of the
/// group before it (0 if there is none). Header (but for `slots`) and messages are as before, and
/// so is each fold's left and right, so results are bit for bit the same.
///
/// `window` bounds the messages of one lane, peer and direction in a group; 0: any number. Pieces
/// of a segmented schedule overlap on their way from rank to rank only with a window: 1 makes a
/// chain a pipeline.
///
/// Numbers rest on what all ranks do: `schedule_of(r)` is rank r's schedule. Time is linear in
/// their steps and dependencies, about as long as they take to be generated; memory 50 bytes a
/// step. Throws Error(invalid_argument) where a message has no partner, or steps wait for one
/// another in a circle.
Schedule grouped(const std::function<Schedule(int rank)>& schedule_of, int rank, int window = 0);
/// The same for a rank that runs `own` where all count on schedule_of(own.rank()): the same
/// messages, but with other steps between, other regions or dependencies, as where only its input
/// and output are one buffer. Throws Error(invalid_argument) where the messages are not the same,
/// or one waits for another of its group or a later one.
Schedule grouped(const std::function<Schedule(int rank)>& schedule_of, const Schedule& own,
                 int window = 0);
/// The same for all ranks at once; schedules[r] is rank r's.
std::vector<Schedule> grouped(std::span<const Schedule> schedules, int window = 0);

}  // namespace baton
