#pragma once
/// `baton-train pipeline draw`: a pipeline schedule over predicted times.

#include <cstdint>
#include <string>

#include "../pipeline/schedule.hpp"

namespace baton::transformer::program {

/// What is drawn, beside the schedule.
struct DrawOptions {
  double forward_ms = 1, backward_ms = 0;  ///< of a stage and micro-batch; 0: twice forward
  double weight_part = 0.5;      ///< of backward's time, where a schedule cuts it in two parts
  std::int64_t bytes = 1 << 20;  ///< of activations that cross a boundary; gradients have as many
  std::string network;           ///< empty: messages take no time
  std::string output, title;
  bool critical_path = false;
};

/// What was drawn.
struct Drawn {
  std::int64_t ns = 0;  ///< of all
  double bubble = 0;    ///< the part of the ranks' time in which they do not compute
};

/// Draws a proved schedule. Throws Error(invalid_argument) where an option does not fit.
Drawn draw(const PipelineSchedule& schedule, const DrawOptions& options);

}  // namespace baton::transformer::program
