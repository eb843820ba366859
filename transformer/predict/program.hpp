#pragma once
/// A whole step of training as one program for each rank.

#include <cstdint>
#include <string>
#include <vector>

#include "../pipeline/schedule.hpp"
#include "baton/schedule.hpp"
#include "collectives.hpp"
#include "layout.hpp"
#include "pieces.hpp"
#include "times.hpp"

#pragma GCC visibility push(default)
namespace baton {
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

/// A collective of a rank's program, or a message of its pipeline: its steps are [first, last).
struct StepExchange {
  std::string name;           ///< "all_reduce", "send" or "recv"
  StepGroup group;            ///< of a message: sender and receiver
  Choice choice;              ///< of a collective
  std::int64_t elements = 0;  ///< of the whole vector; TimedOperation::bytes has its bytes
  std::uint32_t first = 0, last = 0;
};
/// The program of one rank.
struct StepProgram {
  Schedule schedule;
  std::vector<StepExchange> exchanges;  ///< in the order in which they start
};

/// The program of one rank: computations of its layers, exchanges over axes tp and sp, boundaries
/// of the pipeline, sums of gradients beside backward, or the sharded state's collectives, and the
/// optimizer. Elements are those of the model's type. Without a pipeline, computations have the
/// names of recordings (record_units()), else those of the pipeline's actions.
Schedule program_of(const StepPlan& plan, int rank);
/// The same, with the places of its exchanges.
StepProgram step_program(const StepPlan& plan, int rank);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
