#pragma once

#include "../select/select.hpp"
#include "arguments.hpp"

namespace baton::communicator {

/// This rank's schedule of a call, in fused groups that all ranks agree on. The groups are derived
/// from facts that all ranks know. A rank does not know whether others call in place. Calls in
/// place wait for more, so their schedules are used.
///
/// Throws Error(unsupported) if ranks know only their own counts and a message of the algorithm
/// waits for another.
Schedule fused_schedule(const Arguments& arguments, const selecting::Selection& selected,
                        const Problem& problem);

}  // namespace baton::communicator
