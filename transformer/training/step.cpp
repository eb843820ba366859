#include "step.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "../instantiation.hpp"
#include "../ops/ops.hpp"
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

/// Outputs of micro-batches, one after the other.
template <class T>
Array<T> joined(const std::vector<Array<T>>& outputs, const Shape& whole) {
  if (outputs.size() == 1) return outputs[0];
  auto all = Array<T>::uninitialized(whole);
  std::int64_t at = 0;
  for (const Array<T>& output : outputs) {
    assign<T>(output, all.view().slice(0, at, at + output.extent(0)));
    at += output.extent(0);
  }
  return all;
}

}  // namespace

template <class T>
StepResult<T> train_step(Module<T>& model, const Share<T>& share, Optimizer<T>& optimizer,
                         const Mesh& mesh, const StepOptions& options) {
  if (options.micro_batches < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("micro_batches: expected at least 1, found {}", options.micro_batches));
  }
  const Params<T> params = model.params();
  model.zero_grads();
  GradientBuckets<T> buckets(params, mesh, options.bucket_bytes);
  const std::int64_t samples = share.batch.samples();
  const int micro_batches =
      static_cast<int>(std::min<std::int64_t>(options.micro_batches, samples));
  double loss = 0;
  std::vector<Array<T>> outputs;
  for (int m = 0; m < micro_batches; ++m) {
    const Range range = slice_of(samples, micro_batches, m);
    Context context;
    context.random = options.random;
    context.first_sample = share.first_sample + range.begin;
    context.meanwhile = [&] { buckets.progress(); };
    if (m == micro_batches - 1)
      context.completed = [&](const ParamInfo& param) { buckets.ready(param); };
    const Batch<T> micro = micro_batches == 1 ? share.batch : samples_of(share.batch, range);
    loss += add_gradients(model, micro, share.elements, context, outputs.emplace_back());
  }
  buckets.finish();
  if (Communicator* const others = mesh.along(share.others))
    others->all_reduce(std::span(&loss, 1), sum);
  if (std::isfinite(loss)) optimizer.step();
  return {loss, joined(outputs, share.batch.target.shape())};
}

#define BATON_INSTANTIATE(T)                             \
  template BATON_INSTANTIATION StepResult<T> train_step( \
      Module<T>&, const Share<T>&, Optimizer<T>&, const Mesh&, const StepOptions&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
