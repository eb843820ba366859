#pragma once

#include <vector>

#include "part.hpp"

namespace baton::tracing {

/// Merges the parts of all ranks, or of some, on rank 0's clock. Throws Error(invalid_argument) if
/// they are not of one recording. Also throws if a clock was not compared with rank 0's before and
/// after the recording, unless `force`: then one comparison suffices, and without any, times are
/// unchanged.
Timeline merged(std::vector<Part> parts, bool force);

}  // namespace baton::tracing
