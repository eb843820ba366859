#pragma once

#include <span>

#include "baton/schedule/problem.hpp"
#include "baton/schedule/step.hpp"

namespace baton::proving {

/// Schedules and problems are those of ranks 0, 1, … of one call, and the ranks' views of it agree;
/// throws Error(invalid_argument) otherwise.
void check_together(std::span<const Schedule> schedules, std::span<const Problem> problems);

}  // namespace baton::proving
