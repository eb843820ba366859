#pragma once

#include <functional>

#include "baton/simulate.hpp"
#include "program.hpp"

namespace baton::simulating {

/// Throws Error(unsupported) if the simulation of so many ranks needs more memory than there is.
/// Estimates the need from a few ranks.
void check_memory(int ranks, const std::function<FlatRank(int)>& rank_of, const Network& network);

/// Throws the same error if `needed` bytes are more than `available`.
void refuse_beyond(int ranks, double needed, double available);

}  // namespace baton::simulating
