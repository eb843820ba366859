#include "gpt2.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "../accelerator.hpp"
#include "../shape_guard.hpp"
#include "baton/error.hpp"

namespace baton::transformer {
namespace {

constexpr double deviation = 0.02;

/// The module that a block is on this mesh. A block that nobody cuts has no parts beside its whole
/// weights.
template <class T>
Module<T>& module_of(TransformerBlock<T>& block, const Mesh& mesh) {
  if (mesh.size(Axis::tp | Axis::sp) == 1) return block;
  return block.parallel();
}

}  // namespace

std::int64_t Gpt2Config::parameters() const {
  const std::int64_t d = d_model;
  return (vocabulary + context) * d + layers * (12 * d * d + 13 * d) + 2 * d;
}

BlockConfig Gpt2Config::block(std::int64_t layer) const {
  BlockConfig block;
  block.d_model = d_model, block.heads = heads, block.d_ff = 4 * d_model;
  block.causal = block.attention_bias = true;
  block.activation = activation;
  block.epsilon = epsilon;
  block.attention_dropout = block.hidden_dropout = dropout;
  block.name = fmt::format("block{}", layer);
  return block;
}

Gpt2Config gpt2_preset(std::string_view name) {
  if (name == "small") return {};
  if (name == "mini") return {.layers = 4, .heads = 8, .d_model = 256};
  if (name == "tiny") return {.layers = 2, .heads = 4, .d_model = 64};
  throw Error(ErrorCode::invalid_argument,
              fmt::format("GPT-2: expected tiny, mini or small, found \"{}\"", name));
}

template <class T>
struct Gpt2<T>::Saved {
  TokenBatch batch;
  Array<T> x;            // the last block's result
  Array<Wide<T>> stats;  // of the final norm
  Array<T> normed;       // as the head has it
  Array<T> dlogits;
};

template <class T>
Gpt2<T>::Gpt2(const Gpt2Config& config, const Random& random, const Mesh& mesh,
              bool sequence_parallel)
    : config_(config),
      mesh_(mesh),
      sequence_parallel_(sequence_parallel && mesh.size(Axis::tp) > 1),
      embedding_(config.vocabulary, config.d_model, mesh, random, sequence_parallel_, deviation) {
  const Group tp = mesh.group(Axis::tp);
  enter_head_ =
      sequence_parallel_ ? Exchange::gather_sequence(tp, 1) : Exchange::broadcast_parallel(tp);
  const auto normal = [&](Param<T>& param, double by) {
    fill_normal(param.value.view(), random.of(param.name), by);
  };
  const std::int64_t d = config.d_model;
  positions_ = Param<T>("positions", Array<T>({config.context, d}));
  normal(positions_, deviation);
  const double residual = deviation / std::sqrt(2.0 * static_cast<double>(config.layers));
  for (std::int64_t l = 0; l < config.layers; ++l) {
    auto block = std::make_unique<TransformerBlock<T>>(config.block(l), random);
    for (Param<T>* param : {&block->q_proj, &block->k_proj, &block->v_proj, &block->fc1})
      normal(*param, deviation);
    for (Param<T>* param : {&block->o_proj, &block->fc2}) normal(*param, residual);
    for (Param<T>* param : {&block->q_proj_bias, &block->k_proj_bias, &block->v_proj_bias,
                            &block->o_proj_bias, &block->fc1_bias, &block->fc2_bias})
      detail::zero(param->value.data(), param->value.bytes());
    if (mesh.size(Axis::tp | Axis::sp) > 1) {
      block->parallelize(mesh, sequence_parallel_);
      block->forget_other_forms();
    }
    recomputed_.emplace_back(module_of(*block, mesh));
    blocks_.push_back(std::move(block));
  }
  norm_weight_ = Param<T>("norm_weight", Array<T>({d}));
  for (T& value : norm_weight_.value.span()) value = narrow<T>(1);
  norm_bias_ = Param<T>("norm_bias", Array<T>({d}));
  const Axes samples = Axis::dp | Axis::sp;
  for (Param<T>* param : {&positions_, &norm_weight_, &norm_bias_})
    param->partial = sequence_parallel_ ? samples | Axis::tp : samples;
}

template <class T>
Params<T> Gpt2<T>::params() {
  Params<T> all{&norm_weight_, &norm_bias_};
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    const Params<T> more = module_of(**block, mesh_).params();
    all.insert(all.end(), more.begin(), more.end());
  }
  all.push_back(&positions_);
  all.push_back(&embedding_.table);
  return all;
}

template <class T>
std::vector<Unit<T>> Gpt2<T>::units() {
  std::vector<Unit<T>> units;
  units.push_back({"embedding", {&norm_weight_, &norm_bias_, &positions_, &embedding_.table}});
  for (const auto& block : blocks_)
    units.push_back({block->config().name, module_of(*block, mesh_).params()});
  return units;
}

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
Module<T>& Gpt2<T>::layer(std::size_t l) {
  return config_.recompute ? recomputed_[l] : module_of(*blocks_[l], mesh_);
}

template <class T>
Array<T> Gpt2<T>::body(View<const std::int32_t> ids, Saved& saved, Context& context) {
  expect_shape("GPT-2: ids", ids.shape(), {any, any});
  const std::int64_t whole = ids.extent(1) * mesh_.size(Axis::sp);
  if (whole > config_.context) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("GPT-2: expected at most {} positions, found {}", config_.context, whole));
  }
  context.enter(0, false);
  Array<T> x = embedding_.forward(ids);
  const Range own = positions(x.shape());
  for (std::int64_t sample = 0; sample < x.extent(0); ++sample)
    add<T>(positions_.value.view().slice(0, own.begin, own.end), x.view().select(0, sample));
  dropout(x.shape(), context).apply(x.view());
  context.leave(0, false);
  for (std::size_t l = 0; l < blocks_.size(); ++l) {
    context.enter(l + 1, false);
    x = layer(l).forward(x, context);
    context.leave(l + 1, false);
  }
  context.enter(0, false);  // the callers, who have the head, leave it
  saved.x = x;
  saved.stats = Array<Wide<T>>::uninitialized({x.extent(0) * x.extent(1), 2});
  auto normed = Array<T>::uninitialized(x.shape());
  layer_norm<T>(x, norm_weight_.value, norm_bias_.value, config_.epsilon, normed.view(),
                saved.stats.view());
  return enter_head_.forward(std::move(normed));
}

template <class T>
double Gpt2<T>::forward(const TokenBatch& batch, double elements, Context& context) {
  Saved saved;
  saved.normed = body(batch.ids_view(), saved, context);
  const std::int64_t tokens = batch.shape.elements();
  auto logits = Array<T>::uninitialized({tokens, embedding_.table.value.extent(0)});
  linear<T>(saved.normed.view().rows(), embedding_.table.value, View<T>(), logits.view());
  if (context.keeps) saved.dlogits = Array<T>::uninitialized(logits.shape());
  const double loss = vocab_parallel_cross_entropy<T>(logits, batch.targets_view(), elements,
                                                      mesh_.group(Axis::tp), saved.dlogits.view());
  context.leave(0, false);
  saved.batch = batch;
  context.push(std::move(saved));
  return loss;
}

template <class T>
void Gpt2<T>::backward(Context& context) {
  Saved saved = context.pop<Saved>();
  context.enter(0, true);
  Param<T>& table = embedding_.table;
  auto dnormed = Array<T>::uninitialized(saved.normed.shape());
  linear_backward_input<T>(saved.dlogits, table.value, dnormed.view().rows());
  auto pending = enter_head_.start_backward(std::move(dnormed));
  linear_backward_weight<T>(saved.normed.view().rows(), saved.dlogits, table.grad.view(), {},
                            context.meanwhile);
  const Array<T> dy = pending.wait();
  auto dx = Array<T>::uninitialized(saved.x.shape());
  layer_norm_backward<T>(dy, saved.x, norm_weight_.value, saved.stats, dx.view(),
                         norm_weight_.grad.view(), norm_bias_.grad.view());
  context.complete(norm_weight_);
  context.complete(norm_bias_);
  saved.dlogits = {}, saved.normed = {}, saved.x = {};
  context.leave(0, true);
  for (std::size_t l = blocks_.size(); l-- > 0;) {
    context.enter(l + 1, true);
    dx = layer(l).backward(dx, context);
    context.leave(l + 1, true);
  }
  if (!dx.alone()) dx = dx.copy();
  dropout(dx.shape(), context).apply(dx.view());
  const Range own = positions(dx.shape());
  for (std::int64_t sample = 0; sample < dx.extent(0); ++sample)
    add<T>(dx.view().select(0, sample), positions_.grad.view().slice(0, own.begin, own.end));
  context.complete(positions_);
  embedding_.backward(saved.batch.ids_view(), dx);
  context.complete(table);
}

template <class T>
Array<T> Gpt2<T>::logits(View<const std::int32_t> ids, Context context) {
  expect_shape("GPT-2: ids", ids.shape(), {any, any});
  context.keeps = context.training = false;
  // Positions at the end make equal parts; those before do not see them.
  const std::int64_t samples = ids.extent(0), positions = ids.extent(1);
  const int cuts = mesh_.size(sequence_parallel_ ? Axis::sp | Axis::tp : Axes(Axis::sp));
  TokenBatch padded;
  padded.shape = {samples, (positions + cuts - 1) / cuts * cuts};
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const std::int32_t* const row = &ids(sample, 0);
    padded.ids.insert(padded.ids.end(), row, row + positions);
    padded.ids.resize(static_cast<std::size_t>((sample + 1) * padded.shape[1]));
  }
  padded.targets = padded.ids;
  const TokenBatch own = positions_of(padded, mesh_);
  Saved saved;
  const Array<T> normed = body(own.ids_view(), saved, context);
  auto part = Array<T>::uninitialized(normed.shape().with(2, embedding_.table.value.extent(0)));
  linear<T>(normed, embedding_.table.value, View<T>(), part.view());
  context.leave(0, false);
  Array<T> all = Exchange::gather_parallel(mesh_.group(Axis::tp), 2).forward(std::move(part));
  all = Exchange::gather_parallel(mesh_.group(Axis::sp), 1).forward(std::move(all));
  if (all.extent(1) == positions) return all;
  return Array<T>::copy_of(all.view().slice(1, 0, positions));
}

template class Gpt2<float>;
template class Gpt2<double>;
template class Gpt2<bf16>;

}  // namespace baton::transformer
