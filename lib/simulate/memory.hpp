#pragma once

#include <functional>

#include "baton/simulate.hpp"
#include "program.hpp"

namespace baton::simulating {

/// Throws Error(unsupported) where simulating so many ranks needs more memory than there is, judged
/// by a few of them.
void check_memory(int ranks, const std::function<FlatRank(int)>& rank_of, const Network& network);

/// The same sentence, if `needed` bytes are more than `available`.
void refuse_beyond(int ranks, double needed, double available);

/// Bytes that this process may still take, by the system's and its control group's word.
double available_memory();

}  // namespace baton::simulating
