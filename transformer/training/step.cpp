#include "step.hpp"

#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "../instantiation.hpp"
#include "../ops/ops.hpp"
#include "../recorded.hpp"
#include "../shape_guard.hpp"
#include "baton/error.hpp"

namespace baton::transformer {
namespace {

/// Adds the gradients of one micro-batch; returns its part of the loss.
template <class T>
double add_gradients(Module<T>& model, const Batch<T>& batch, double elements, Context& context,
                     Array<T>& output) {
  output = model.forward(batch.x, context);
  expect_shape("output", output.shape(), batch.target.shape());
  auto dy = Array<T>::uninitialized(output.shape());
  const double loss = mse<T>(output, batch.target, elements, dy.view());
  model.backward(dy, context);
  return loss;
}

/// Makes `loss`, of which ranks along `others` have parts, that of all; returns whether it is
/// finite, and `finite` true, on all ranks. One sum of a number unless that is wrong.
bool add_losses(double& loss, bool finite, const Mesh& mesh, Axes others) {
  Communicator* const ranks = mesh.along(all_axes);
  if (!ranks) return finite && std::isfinite(loss);
  for (const Axis axis : {Axis::dp, Axis::tp, Axis::sp, Axis::pp})
    if (!others.has(axis) && mesh.rank(axis) > 0) loss = 0;  // the first rank along it has the same
  double all = finite ? loss : std::numeric_limits<double>::quiet_NaN();
  ranks->all_reduce(std::span(&all, 1), sum);
  if (!std::isfinite(all)) {
    ranks->all_reduce(std::span(&loss, 1), sum);
    return false;
  }
  loss = all;
  return true;
}

}  // namespace

template <class T>
StepLoss train_step(DataParallel<T>& replicas, Optimizer<T>& optimizer, const Mesh& mesh,
                    Axes others, const MicroBatch& compute, const StepOptions& options) {
  if (options.micro_batches < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("micro_batches: expected at least 1, found {}", options.micro_batches));
  }
  const auto compute_all = [&] {
    double loss = 0;
    for (int m = 0; m < options.micro_batches; ++m) {
      Context context;
      context.random = options.random;
      replicas.attach(context, m == options.micro_batches - 1);
      record_units(context, m);
      loss += compute(m, context);
    }
    return loss;
  };
  return train_step(replicas, optimizer, mesh, others, StepWork{compute_all}, options);
}

template <class T>
StepLoss train_step(DataParallel<T>& replicas, Optimizer<T>& optimizer, const Mesh& mesh,
                    Axes others, const StepWork& work, const StepOptions& options) {
  StepLoss result;
  replicas.start_step();
  result.loss = work.compute();
  replicas.finish_gradients();
  if (work.complete) work.complete();
  bool finite = true;
  if (options.largest_norm > 0) {
    result.gradient_norm = clip_gradients(replicas.params(), mesh, options.largest_norm);
    finite = std::isfinite(result.gradient_norm);
  } else {
    finite = finite_gradients(replicas.params());
  }
  result.stepped = add_losses(result.loss, finite, mesh, others);
  const auto begin = std::chrono::steady_clock::now();
  if (result.stepped) {
    const RecordedWork recorded(ComputationKind::optimizer, [] { return "optimizer"; });
    optimizer.step();
  }
  result.optimizer_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  replicas.finish_step();
  return result;
}

template <class T>
StepResult<T> train_step(Module<T>& model, DataParallel<T>& replicas, const Share<T>& share,
                         Optimizer<T>& optimizer, const Mesh& mesh, const StepOptions& options) {
  const std::int64_t samples = share.batch.samples();
  std::vector<Array<T>> outputs;
  const auto compute = [&](int m, Context& context) {
    const Range range = slice_of(samples, options.micro_batches, m);
    context.first_sample = share.first_sample + range.begin;
    const bool whole = options.micro_batches == 1;
    return add_gradients(model, whole ? share.batch : samples_of(share.batch, range),
                         share.elements, context, outputs.emplace_back());
  };
  StepResult<T> result{
      train_step(replicas, optimizer, mesh, share.others, MicroBatch(compute), options), {}};
  result.output = joined_samples(outputs);
  return result;
}

template <class T>
StepResult<T> train_step(Module<T>& model, const Share<T>& share, Optimizer<T>& optimizer,
                         const Mesh& mesh, const StepOptions& options) {
  DistributedDataParallel<T> replicas(model, mesh, {.bucket_bytes = options.bucket_bytes});
  return train_step(model, replicas, share, optimizer, mesh, options);
}

template <class T>
double evaluate(Module<T>& model, DataParallel<T>& replicas, const Share<T>& share,
                const Mesh& mesh) {
  Context context;
  context.keeps = context.training = false;
  context.first_sample = share.first_sample;
  replicas.attach(context, false);
  const Array<T> output = model.forward(share.batch.x, context);
  expect_shape("output", output.shape(), share.batch.target.shape());
  double loss = mse<T>(output, share.batch.target, share.elements, {});
  if (Communicator* const ranks = mesh.along(share.others))
    ranks->all_reduce(std::span(&loss, 1), sum);
  return loss;
}

#define BATON_INSTANTIATE(T)                                                                     \
  template BATON_INSTANTIATION StepLoss train_step(DataParallel<T>&, Optimizer<T>&, const Mesh&, \
                                                   Axes, const StepWork&, const StepOptions&);   \
  template BATON_INSTANTIATION StepLoss train_step(DataParallel<T>&, Optimizer<T>&, const Mesh&, \
                                                   Axes, const MicroBatch&, const StepOptions&); \
  template BATON_INSTANTIATION StepResult<T> train_step(Module<T>&, DataParallel<T>&,            \
                                                        const Share<T>&, Optimizer<T>&,          \
                                                        const Mesh&, const StepOptions&);        \
  template BATON_INSTANTIATION double evaluate(Module<T>&, DataParallel<T>&, const Share<T>&,    \
                                               const Mesh&);                                     \
  template BATON_INSTANTIATION StepResult<T> train_step(                                         \
      Module<T>&, const Share<T>&, Optimizer<T>&, const Mesh&, const StepOptions&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
