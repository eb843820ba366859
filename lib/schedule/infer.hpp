#pragma once

#include <cstdint>
#include <span>

#include "baton/schedule/step.hpp"

namespace baton::scheduling {

/// The dependencies that program order and overlapping regions imply. `assumed` counts pairs that
/// were ordered although overlap was not proved.
Dependencies infer_dependencies(std::span<const Step> steps, std::span<const Region> regions,
                                std::int64_t& assumed);

}  // namespace baton::scheduling
