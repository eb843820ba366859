#pragma once
/// One step of training: forward, loss, backward, optimizer.

#include <cstdint>
#include <functional>

#include "../module.hpp"
#include "../optimizer.hpp"
#include "batch.hpp"
#include "data_parallel.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Settings of a step.
struct StepOptions {
  /// The share is cut into this many near-equal slices. They are computed one after the other, and
  /// their gradients are added.
  int micro_batches = 1;
  /// The largest norm of all gradients together (clip_gradients()); 0: any.
  double largest_norm = 0;
  /// Gradients are reduced in buckets of at most this many bytes, each as soon as it is complete.
  std::int64_t bucket_bytes = 4 << 20;
  Random random = {};  ///< for dropout; another one for each step
};

/// The result of one step. Loss and norm are the same on every rank.
struct StepLoss {
  double loss = 0;           ///< of the whole batch, before the step
  double gradient_norm = 0;  ///< of all gradients, before they are clipped; 0 unless they may be
  double optimizer_seconds = 0;  ///< that this rank's optimizer took
  /// Whether weights have changed: loss and gradients were finite numbers; the same on every rank.
  bool stepped = true;
};

/// The part of a step that differs between forms of training.
struct StepWork {
  /// Computes this rank's part of the loss of all micro-batches, and adds their gradients.
  std::function<double()> compute;
  /// Called when the gradients of DataParallel::params() are sums over the ranks that share them.
  std::function<void()> complete = {};
};

/// Makes one step of any model, as the whole batch on one rank would make it. Losses and gradients
/// of all ranks add up; those of ranks that differ along `others` are losses of other samples,
/// positions or layers. If the loss or a gradient of any rank is not finite, weights and optimizer
/// stay as they are; gradients on an accelerator are looked at only if options.largest_norm is set.
/// Collective over the mesh.
template <class T>
StepLoss train_step(DataParallel<T>& replicas, Optimizer<T>& optimizer, const Mesh& mesh,
                    Axes others, const StepWork& work, const StepOptions& options = {});

/// Computes this rank's part of the loss of micro-batch `number` of a step, and adds its gradients.
using MicroBatch = std::function<double(int number, Context& context)>;

/// The same; `compute` is called for each of options.micro_batches, one after the other. Throws
/// Error(invalid_argument) if there is no micro-batch.
template <class T>
StepLoss train_step(DataParallel<T>& replicas, Optimizer<T>& optimizer, const Mesh& mesh,
                    Axes others, const MicroBatch& compute, const StepOptions& options = {});

/// Loss and output of one step.
template <class T>
struct StepResult : StepLoss {
  Array<T> output;  ///< of this rank's share, before the step
};

/// Makes one step of a model with the mean squared error of its output as the loss, in the form in
/// which `replicas` has the model. Throws Error(invalid_argument) if the shapes of output and
/// target differ.
template <class T>
StepResult<T> train_step(Module<T>& model, DataParallel<T>& replicas, const Share<T>& share,
                         Optimizer<T>& optimizer, const Mesh& mesh,
                         const StepOptions& options = {});

/// The same with all parameters on every rank (DistributedDataParallel). The parameters say over
/// which axes of the mesh their gradients are partial (ParamInfo::partial). Afterwards gradients
/// are those of the whole batch.
template <class T>
StepResult<T> train_step(Module<T>& model, const Share<T>& share, Optimizer<T>& optimizer,
                         const Mesh& mesh, const StepOptions& options = {});

/// The mean squared error of a model's output, without dropout; the same on every rank. Collective
/// over the mesh. Throws Error(invalid_argument) if the shapes of output and target differ.
template <class T>
double evaluate(Module<T>& model, DataParallel<T>& replicas, const Share<T>& share,
                const Mesh& mesh);

/// The step on this rank alone: the reference for parallel steps.
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
#pragma GCC visibility pop
