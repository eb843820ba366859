#include "stages.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "../ops/ops.hpp"
#include "../shape_guard.hpp"
#include "baton/error.hpp"

namespace baton::transformer {
namespace {

void expect_micro_batches(int micro_batches, std::int64_t most) {
  if (micro_batches < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("micro_batches: expected at least 1, found {}", micro_batches));
  }
  if (micro_batches <= most) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("micro_batches: expected at most the {} samples of a rank, found {}",
                          most, micro_batches));
}

}  // namespace

// --- GPT-2 ---------------------------------------------------------------------------------------

template <class T>
void Gpt2Stage<T>::start(const TokenShare& share, int micro_batches) {
  expect_micro_batches(micro_batches, std::max<std::int64_t>(share.batch.shape[0], 1));
  share_ = share;
  micro_batches_ = micro_batches;
}

template <class T>
Params<T> Gpt2Stage<T>::shared() {
  if (part_.first() == part_.last()) return {};
  return {part_.table()};
}

template <class T>
Shape Gpt2Stage<T>::ids(int micro_batch) const {
  const Shape& all = share_.batch.shape;
  return all.with(0, slice_of(all[0], micro_batches_, micro_batch).size());
}

template <class T>
Shape Gpt2Stage<T>::input(int micro_batch) const {
  return part_.first() ? Shape() : part_.activation(ids(micro_batch));
}

template <class T>
Shape Gpt2Stage<T>::output(int micro_batch) const {
  return part_.last() ? Shape() : part_.activation(ids(micro_batch));
}

template <class T>
StageOutput<T> Gpt2Stage<T>::forward(int micro_batch, Array<T> x, Context& context) {
  const Range range = slice_of(share_.batch.shape[0], micro_batches_, micro_batch);
  context.first_sample = share_.first_sample + range.begin;
  return part_.forward(samples_of(share_.batch, range), share_.tokens, std::move(x), context);
}

template <class T>
Array<T> Gpt2Stage<T>::backward(Array<T> dy, Context& context) {
  return part_.backward(std::move(dy), context);
}

// --- VGG16 ---------------------------------------------------------------------------------------

template <class T>
void Vgg16Stage<T>::start(const ImageShare<T>& share, int micro_batches) {
  expect_micro_batches(micro_batches, micro_batches);
  share_ = share;
  micro_batches_ = micro_batches;
}

template <class T>
Shape Vgg16Stage<T>::images(int micro_batch) const {
  const Shape& all = share_.batch.images.shape();
  return all.with(0, slice_of(all[0], micro_batches_, micro_batch).size());
}

template <class T>
Shape Vgg16Stage<T>::input(int micro_batch) const {
  if (part_.first()) return {};
  return part_.activation(images(micro_batch), part_.part().begin);
}

template <class T>
Shape Vgg16Stage<T>::output(int micro_batch) const {
  if (part_.last()) return {};
  return part_.activation(images(micro_batch), part_.part().end);
}

template <class T>
StageOutput<T> Vgg16Stage<T>::forward(int micro_batch, Array<T> x, Context& context) {
  const Range range = slice_of(share_.batch.samples(), micro_batches_, micro_batch);
  context.first_sample = share_.first_sample + range.begin;
  const std::vector<std::int32_t>& labels = share_.batch.labels;
  const ImageBatch<T> batch{samples_of(share_.batch.images, range),
                            {labels.begin() + range.begin, labels.begin() + range.end}};
  return part_.forward(batch, share_.samples, std::move(x), context);
}

template <class T>
Array<T> Vgg16Stage<T>::backward(Array<T> dy, Context& context) {
  return part_.backward(std::move(dy), context);
}

// --- layers in a row -----------------------------------------------------------------------------

template <class T>
void LayersStage<T>::start(const Share<T>& share, int micro_batches) {
  expect_micro_batches(micro_batches, micro_batches);
  share_ = share;
  micro_batches_ = micro_batches;
}

template <class T>
Shape LayersStage<T>::of_micro_batch(const Shape& shape, int micro_batch) const {
  if (shape.rank() == 0) return shape;
  return shape.with(0, slice_of(share_.batch.samples(), micro_batches_, micro_batch).size());
}

template <class T>
Shape LayersStage<T>::input(int micro_batch) const {
  return of_micro_batch(input_, micro_batch);
}

template <class T>
Shape LayersStage<T>::output(int micro_batch) const {
  return of_micro_batch(output_, micro_batch);
}

template <class T>
StageOutput<T> LayersStage<T>::forward(int micro_batch, Array<T> x, Context& context) {
  const Range range = slice_of(share_.batch.samples(), micro_batches_, micro_batch);
  context.first_sample = share_.first_sample + range.begin;
  if (input_.rank() == 0) {
    x = samples_of(share_.batch.x, range);
  } else {
    expect_shape("stage: input", x.shape(), input(micro_batch));
  }
  StageOutput<T> output{layers_.forward(x, context)};
  if (output_.rank() > 0) {
    expect_shape("stage: output", output.activation.shape(), this->output(micro_batch));
    return output;
  }
  const Array<T> target = samples_of(share_.batch.target, range);
  expect_shape("output", output.activation.shape(), target.shape());
  Saved saved;
  if (context.keeps) saved.dy = Array<T>::uninitialized(target.shape());
  output.loss = mse<T>(output.activation, target, share_.elements, saved.dy.view());
  context.push(std::move(saved));
  return output;
}

template <class T>
Array<T> LayersStage<T>::backward(Array<T> dy, Context& context) {
  if (output_.rank() == 0) dy = context.pop<Saved>().dy;
  Array<T> dx = layers_.backward(dy, context);
  return input_.rank() == 0 ? Array<T>() : dx;
}

#define BATON_INSTANTIATE(T)    \
  template class Gpt2Stage<T>;  \
  template class Vgg16Stage<T>; \
  template class LayersStage<T>;
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
