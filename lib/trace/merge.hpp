#pragma once

#include <vector>

#include "part.hpp"

namespace baton::tracing {

/// The parts of all ranks, or of some, on rank 0's clock. Throws Error(invalid_argument) where they
/// are not of one recording, or, unless `force`, where a clock was not compared with rank 0's
/// before and after: then such times are taken as they are, or by what sample there is.
Timeline merged(std::vector<Part> parts, bool force);

}  // namespace baton::tracing
