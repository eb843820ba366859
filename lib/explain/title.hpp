#pragma once

#include <string>

#include "baton/schedule/step.hpp"

namespace baton {

/// What the schedule is a part of: "broadcast by binomial, 4 ranks, root 1".
std::string title(const Schedule& schedule);

}  // namespace baton
