#pragma once
/// Every collective of the C interface in every form, on any communicator.

#include "baton/baton.h"

namespace c_support {

/// Runs all on vectors of these many elements a rank, and compares results with sums by hand.
/// `choice`: of the collectives that have "ring"; null: chosen.
void every_collective(baton_communicator* world, long long count, const char* ring = nullptr);

}  // namespace c_support
