#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "baton/schedule/step.hpp"

namespace baton::simulating {

/// Throws Error(unsupported) where simulating so many ranks needs more memory than there is, judged
/// by the schedules of a few of them.
void check_memory(int ranks, const std::function<Schedule(int)>& schedule_of,
                  std::size_t element_bytes, int calls);

/// The same sentence, if `needed` bytes are more than `available`.
void refuse_beyond(int ranks, double needed, double available);

/// Bytes that this process may still take, by the system's and its control group's word.
double available_memory();

}  // namespace baton::simulating
