#pragma once

#include "../select/select.hpp"
#include "arguments.hpp"

namespace baton::communicator {

/// This rank's schedule of a call, in fused groups that all ranks agree on. They are counted on
/// facts that all ranks know: the schedules of calls in place, since a rank does not know whether
/// others call in place, and these wait for more. Throws Error(unsupported) where ranks only know
/// their own counts and messages of the algorithm wait for one another.
Schedule fused_schedule(const Arguments& arguments, const selecting::Selection& selected,
                        const Problem& problem);

}  // namespace baton::communicator
