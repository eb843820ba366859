#pragma once

#include <span>

#include "baton/schedule/problem.hpp"
#include "baton/schedule/step.hpp"

namespace baton::proving {

/// Throws Error(invalid_argument) unless schedules and problems are those of ranks 0, 1, … of one
/// call, with consistent views.
void check_together(std::span<const Schedule> schedules, std::span<const Problem> problems);

}  // namespace baton::proving
