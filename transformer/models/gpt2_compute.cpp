/// GPT-2's computations: forward and backward of any part.

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "../accelerator.hpp"
#include "../instantiation.hpp"
#include "../shape_guard.hpp"
#include "baton/error.hpp"
#include "gpt2.hpp"

namespace baton::transformer {

template <class T>
struct Gpt2<T>::Saved {
  TokenBatch batch;
  Array<T> x;            // the last block's result
  Array<Wide<T>> stats;  // of the final norm
  Array<T> normed;       // as the head has it
  Array<T> dlogits;
};

template <class T>
Range Gpt2<T>::positions(const Shape& x) const {
  int part = mesh_.rank(Axis::sp);
  if (sequence_parallel_) part = part * mesh_.size(Axis::tp) + mesh_.rank(Axis::tp);
  return {part * x[1], (part + 1) * x[1]};
}

template <class T>
Dropout Gpt2<T>::dropout(const Shape& x, const Context& context) const {
  Dropout dropout;
  if (!context.training || config_.dropout == 0) return dropout;
  const int parts = mesh_.size(sequence_parallel_ ? Axis::sp | Axis::tp : Axes(Axis::sp));
  dropout.p = config_.dropout;
  dropout.random = context.random.of("embedding");
  dropout.piece = {x.with(1, x[1] * parts), {context.first_sample, positions(x).begin}};
  return dropout;
}

template <class T>
Array<T> Gpt2<T>::embed(const TokenBatch& batch, Context& context) {
  const View<const std::int32_t> ids = batch.ids_view();
  expect_shape("GPT-2: ids", ids.shape(), {any, any});
  const std::int64_t whole = ids.extent(1) * mesh_.size(Axis::sp) - batch.padding;
  if (whole > config_.context) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("GPT-2: expected at most {} positions, found {}", config_.context, whole));
  }
  context.enter(0, false);
  Array<T> x = embedding_->forward(ids);
  const Range own = positions(x.shape());  // padding may lie beyond the context
  const std::int64_t begin = std::min(own.begin, config_.context),
                     end = std::min(own.end, config_.context);
  const View<const T> of_positions = positions_.value.view().slice(0, begin, end);
  for (std::int64_t sample = 0; sample < x.extent(0); ++sample)
    add<T>(of_positions, x.view().select(0, sample).slice(0, 0, end - begin));
  dropout(x.shape(), context).apply(x.view());
  context.leave(0, false);
  return x;
}

template <class T>
Array<T> Gpt2<T>::through_blocks(Array<T> x, Context& context) {
  for (std::size_t l = 0; l < blocks_.size(); ++l) {
    context.enter(block_unit(l), false);
    x = layer(l).forward(x, context);
    context.leave(block_unit(l), false);
  }
  return x;
}

template <class T>
Array<T> Gpt2<T>::normed(Array<T> x, Saved& saved, Context& context) {
  context.enter(head_unit(), false);
  saved.x = std::move(x);
  saved.stats = Array<Wide<T>>::uninitialized({saved.x.extent(0) * saved.x.extent(1), 2});
  auto normed = Array<T>::uninitialized(saved.x.shape());
  layer_norm<T>(saved.x, norm_weight_.value, norm_bias_.value, config_.epsilon, normed.view(),
                saved.stats.view());
  return enter_head_.forward(std::move(normed));
}

template <class T>
double Gpt2<T>::forward(const TokenBatch& batch, double elements, Context& context) {
  expect_whole("forward");
  return forward(batch, elements, {}, context).loss;
}

template <class T>
StageOutput<T> Gpt2<T>::forward(const TokenBatch& batch, double elements, Array<T> x,
                                Context& context) {
  if (first()) {
    x = embed(batch, context);
  } else {
    expect_shape(fmt::format("GPT-2: input of block {}", begin_), x.shape(),
                 activation(batch.shape));
  }
  x = through_blocks(std::move(x), context);
  Saved saved;
  if (first()) saved.batch = batch;
  StageOutput<T> output;
  if (last()) {
    saved.normed = normed(std::move(x), saved, context);
    const View<const T> weight = table()->value.view();
    auto logits = Array<T>::uninitialized({batch.shape.elements(), weight.extent(0)});
    linear<T>(saved.normed.view().rows(), weight, View<T>(), logits.view());
    if (context.keeps) saved.dlogits = Array<T>::uninitialized(logits.shape());
    output.loss = vocab_parallel_cross_entropy<T>(logits, batch.targets_view(), elements,
                                                  mesh_.group(Axis::tp), saved.dlogits.view());
    context.leave(head_unit(), false);
    output.activation = std::move(logits);
  } else {
    output.activation = std::move(x);
  }
  context.push(std::move(saved));
  return output;
}

template <class T>
void Gpt2<T>::backward(Context& context) {
  expect_whole("backward");
  backward({}, context);
}

template <class T>
Array<T> Gpt2<T>::backward(Array<T> dy, Context& context) {
  Saved saved = context.pop<Saved>();
  const TokenBatch batch = std::move(saved.batch);
  if (last()) dy = head_backward(std::move(saved), context);
  for (std::size_t l = blocks_.size(); l-- > 0;) {
    context.enter(block_unit(l), true);
    dy = layer(l).backward(dy, context);
    context.leave(block_unit(l), true);
  }
  if (!first()) return dy;
  embed_backward(batch.ids_view(), std::move(dy), context);
  return {};
}

template <class T>
Array<T> Gpt2<T>::head_backward(Saved saved, Context& context) {
  context.enter(head_unit(), true);
  Param<T>& weight = *table();
  auto dnormed = Array<T>::uninitialized(saved.normed.shape());
  linear_backward_input<T>(saved.dlogits, weight.value, dnormed.view().rows());
  auto pending = enter_head_.start_backward(std::move(dnormed));
  context.weight_part(
      [this, &weight, x = saved.normed, dy = saved.dlogits](const Context& now,
                                                            const Meanwhile& meanwhile) {
        linear_backward_weight<T>(x.view().rows(), dy, weight.grad.view(), {}, meanwhile);
        if (!first()) now.complete(weight);  // otherwise when the embedding has added to it
      },
      context.meanwhile);
  const Array<T> dy = pending.wait();
  auto dx = Array<T>::uninitialized(saved.x.shape());
  layer_norm_backward<T>(dy, saved.x, norm_weight_.value, saved.stats, dx.view(),
                         norm_weight_.grad.view(), norm_bias_.grad.view());
  context.complete(norm_weight_);
  context.complete(norm_bias_);
  context.leave(head_unit(), true);
  return dx;
}

template <class T>
void Gpt2<T>::embed_backward(View<const std::int32_t> ids, Array<T> dx, Context& context) {
  if (!last()) context.enter(0, true);
  if (!dx.alone()) dx = dx.copy();
  dropout(dx.shape(), context).apply(dx.view());
  const Range own = positions(dx.shape());
  const View<T> of_positions = positions_.grad.view().slice(0, own.begin, own.end);
  const std::int64_t elements = of_positions.size();
  add_rows<T>(dx.view().reshaped({dx.extent(0), elements}), of_positions.reshaped({elements}));
  context.complete(positions_);
  embedding_->backward(ids, dx);
  // After the head's part.
  context.weight_part(
      [this](const Context& now, const Meanwhile&) { now.complete(embedding_->table); }, {});
  if (!last()) context.leave(0, true);
}

template <class T>
TokenBatch Gpt2<T>::own_positions(View<const std::int32_t> ids) const {
  expect_shape("GPT-2: ids", ids.shape(), {any, any});
  // Positions at the end make equal parts; those before do not see them.
  const std::int64_t samples = ids.extent(0), positions = ids.extent(1);
  const int cuts = mesh_.size(sequence_parallel_ ? Axis::sp | Axis::tp : Axes(Axis::sp));
  TokenBatch padded;
  padded.shape = {samples, (positions + cuts - 1) / cuts * cuts};
  padded.padding = padded.shape[1] - positions;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const std::int32_t* const row = &ids(sample, 0);
    padded.ids.insert(padded.ids.end(), row, row + positions);
    padded.ids.resize(static_cast<std::size_t>((sample + 1) * padded.shape[1]));
  }
  padded.targets = padded.ids;
  return positions_of(padded, mesh_);
}

template <class T>
Array<T> Gpt2<T>::joined_logits(Array<T> part, std::int64_t positions) const {
  Array<T> all = Exchange::gather_parallel(mesh_.group(Axis::tp), 2).forward(std::move(part));
  all = Exchange::gather_parallel(mesh_.group(Axis::sp), 1).forward(std::move(all));
  if (all.extent(1) == positions) return all;
  return Array<T>::copy_of(all.view().slice(1, 0, positions));
}

template <class T>
Array<T> Gpt2<T>::logits(View<const std::int32_t> ids, Context context) {
  expect_whole("logits");
  context.keeps = context.training = false;
  const TokenBatch own = own_positions(ids);
  Saved saved;
  const Array<T> x = normed(through_blocks(embed(own, context), context), saved, context);
  auto part = Array<T>::uninitialized(x.shape().with(2, table()->value.extent(0)));
  linear<T>(x, table()->value, View<T>(), part.view());
  context.leave(0, false);
  return joined_logits(std::move(part), ids.extent(1));
}

#define BATON_INSTANTIATE(T)                                                               \
  template double Gpt2<T>::forward(const TokenBatch&, double, Context&);                   \
  template void Gpt2<T>::backward(Context&);                                               \
  template StageOutput<T> Gpt2<T>::forward(const TokenBatch&, double, Array<T>, Context&); \
  template Array<T> Gpt2<T>::backward(Array<T>, Context&);                                 \
  template TokenBatch Gpt2<T>::own_positions(View<const std::int32_t>) const;              \
  template Array<T> Gpt2<T>::joined_logits(Array<T>, std::int64_t) const;                  \
  template Array<T> Gpt2<T>::logits(View<const std::int32_t>, Context);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
