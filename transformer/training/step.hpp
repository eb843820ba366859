#pragma once
/// One step of training: forward, mean squared error, backward, optimizer.

#include <cstdint>

#include "../module.hpp"
#include "../optimizer.hpp"
#include "batch.hpp"
#include "baton/export.hpp"

namespace BATON_API baton {
namespace transformer {

template <class T>
struct StepResult {
  double loss = 0;  ///< of the whole batch, before the step; the same on every rank
  Array<T> output;  ///< of this rank's share, before the step
};

struct StepOptions {
  /// The share is computed on in this many near-equal slices, one after the other; their gradients
  /// are added.
  int micro_batches = 1;
  /// Gradients are reduced in buckets of at most this many bytes, each as soon as it is complete.
  std::int64_t bucket_bytes = 4 << 20;
  Random random = {};  ///< of dropout; another one for each step
};

/// The step of a model whose parameters say over which axes of the mesh their gradients are partial
/// (Param::partial), as the whole batch on one rank would make it. Afterwards gradients are those
/// of the whole batch. Where the loss is no finite number, weights stay as they are. Collective
/// over the mesh. Throws Error(invalid_argument) where the model's
/// output has not the target's shape.
template <class T>
StepResult<T> train_step(Module<T>& model, const Share<T>& share, Optimizer<T>& optimizer,
                         const Mesh& mesh, const StepOptions& options = {});

/// On this rank alone: what all others are compared with.
template <class T>
StepResult<T> reference_step(Module<T>& model, const Batch<T>& batch, Optimizer<T>& optimizer,
                             const StepOptions& options = {}) {
  return train_step(model, whole_of(batch), optimizer, Mesh(), options);
}

/// Every rank of axis dp on a near-equal slice of the batch, then one all-reduce of all gradients
/// end to end. Each slice counts by its size, so the result is that of the whole batch.
template <class T>
StepResult<T> dp_step(Module<T>& model, const Batch<T>& batch, Optimizer<T>& optimizer,
                      const Mesh& mesh, StepOptions options = {}) {
  options.bucket_bytes = INT64_MAX;
  return train_step(model, share_of(batch, mesh), optimizer, mesh, options);
}

/// Every rank of axis tp on the whole batch with its part of the weights (replace_to_tp()).
template <class T>
StepResult<T> tp_step(Module<T>& model, const Batch<T>& batch, Optimizer<T>& optimizer,
                      const Mesh& mesh, const StepOptions& options = {}) {
  return train_step(model, whole_of(batch), optimizer, mesh, options);
}

}  // namespace transformer
}  // namespace baton
