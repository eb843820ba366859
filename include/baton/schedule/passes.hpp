#pragma once
/// From schedule to schedule.

#include <cstdint>
#include <span>

#include "baton/schedule/step.hpp"

namespace baton {

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

}  // namespace baton
