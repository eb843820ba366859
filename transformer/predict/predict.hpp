#pragma once
/// The time and memory of a step of training on many ranks, predicted.

#include <cstdint>
#include <functional>
#include <vector>

#include "baton/simulate.hpp"
#include "baton/timeline.hpp"
#include "program.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Memory of the rank that holds the most.
struct StepMemory {
  std::int64_t state = 0;        ///< parameters, gradients and the optimizer's
  std::int64_t activations = 0;  ///< of the most micro-batches at once
  std::int64_t gathered = 0;     ///< units of stage 3
  /// All of it.
  std::int64_t total() const { return state + activations + gathered; }
};
/// By the calculator (training/analysis.hpp). Buffers of messages come on top.
StepMemory memory_of(const StepModel& model, const StepLayout& layout);

/// A predicted step.
struct StepPrediction {
  std::int64_t ns = 0;
  std::int64_t without_messages = 0;  ///< ns, if no message took any time
  std::int64_t alone = 0;  ///< ns of all communication, if computations took no time; -1: not asked
  double tokens_per_second = 0;
  double bubble = 0;  ///< the part of the ranks' time in which the pipeline's order lets them wait
  StepMemory memory;
  std::int64_t messages = 0, sent = 0;  ///< of all ranks; bytes

  /// Communication that computations do not hide, ns.
  std::int64_t exposed() const { return ns - without_messages; }
  /// Communication beside computations, ns; -1: not known.
  std::int64_t hidden() const {
    return alone < 0 ? -1 : std::max<std::int64_t>(alone - exposed(), 0);
  }
};

/// How a step is predicted.
struct PredictOptions {
  std::int64_t panel = 100'000;  ///< ns: how often computations let messages progress; 0: never
  bool alone = true;             ///< also without computations, which takes as long again
  bool computes_apart = false;   ///< computations leave the network's `processors` to messages
  Timeline* timeline = nullptr;  ///< is set to the step's; for few ranks
};
/// Simulates the step on all ranks. The same input gives the same result. Throws like
/// program_of() and simulate().
StepPrediction predict(const StepPlan& plan, const Network& network,
                       const PredictOptions& options = {});

/// About how long a step takes, by closed forms: computations and the pipeline's bubble, exchanges
/// over axes tp and sp, and what of the sums of gradients does not fit beside the last backward.
double estimated_ns(const StepPlan& plan);

/// All layouts of so many ranks that can train the model: sizes of axes, and stages of sharding if
/// state is divided over several ranks. Other settings are those of `like`.
std::vector<StepLayout> layouts_of(const StepModel& model, int ranks, const StepLayout& like);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
