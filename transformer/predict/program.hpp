#pragma once
/// A whole step of training as one program for each rank.

#include <cstdint>
#include <string>
#include <vector>

#include "../pipeline/schedule.hpp"
#include "baton/export.hpp"
#include "baton/schedule.hpp"
#include "collectives.hpp"
#include "layout.hpp"
#include "times.hpp"

namespace BATON_API baton {
namespace transformer {

/// All that a step's programs follow from.
struct StepPlan {
  StepModel model;
  StepLayout layout;
  ComputeTimes times;
  CollectiveChoice choice;
  PipelineSchedule pipeline;            ///< of layout.schedule
  std::int64_t bucket_bytes = 4 << 20;  ///< of gradients that are summed together
};
/// Throws Error(invalid_argument) if the layout cannot train the model.
StepPlan step_plan(const StepModel& model, const StepLayout& layout, const ComputeTimes& times,
                   const CollectiveChoice& choice);

/// A collective behind a piece of computation: that many, of `count` as in Problem.
struct StepExchange {
  Collective collective = Collective::all_reduce;
  Along along = Along::tp;
  std::int64_t count = 0;
  int times = 1;
  bool operator==(const StepExchange&) const = default;
};
/// A piece of computation, and what is exchanged behind it, which the next piece waits for.
struct StepPhase {
  std::int64_t ns = 0;
  std::vector<StepExchange> after;
};
/// The phases of a block for a micro-batch, forward or backward, of `ns` in all.
std::vector<StepPhase> block_phases(const StepModel& model, const StepLayout& layout, bool backward,
                                    std::int64_t ns);

/// The program of one rank: computations of its layers, exchanges over axes tp and sp, boundaries
/// of the pipeline, sums of gradients beside backward, or the sharded state's collectives, and the
/// optimizer. Elements are those of the model's type.
Schedule program_of(const StepPlan& plan, int rank);

}  // namespace transformer
}  // namespace baton
