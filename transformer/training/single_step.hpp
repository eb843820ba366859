#pragma once
/// One step of a SimpleMLP from one seed, in one process and in parallel, so that tests can compare
/// the whole weights afterwards.

#include <cstdint>
#include <string>
#include <vector>

#include "batch.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Sizes of a SimpleMLP.
struct MlpConfig {
  std::int64_t in = 2, hidden = 16, out = 1;
};

/// The result of one step.
template <class T>
struct SingleStep {
  /// A parameter after the step.
  struct Weight {
    std::string name;
    Array<T> value;  ///< whole
  };
  double loss = 0;  ///< before the step
  std::vector<Weight> weights;
};

/// One step of SGD, in one process.
template <class T>
SingleStep<T> single_step(const MlpConfig& config, std::uint64_t seed, const Batch<T>& batch,
                          double learning_rate);
/// The same with the batch shared among all ranks. Collective.
template <class T>
SingleStep<T> data_parallel_single_step(const MlpConfig& config, std::uint64_t seed,
                                        const Batch<T>& batch, double learning_rate,
                                        Communicator& world);
/// The same with both layers column-parallel over all ranks, their outputs gathered. Collective.
/// Throws Error(invalid_argument) if `hidden` or `out` is no multiple of the number of ranks.
template <class T>
SingleStep<T> full_column_parallel_single_step(const MlpConfig& config, std::uint64_t seed,
                                               const Batch<T>& batch, double learning_rate,
                                               Communicator& world);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
