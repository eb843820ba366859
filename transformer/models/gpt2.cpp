#include "gpt2.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

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
Gpt2<T>::Gpt2(const Gpt2Config& config, const Random& random, const Mesh& mesh,
              bool sequence_parallel, std::optional<Range> blocks)
    : config_(config),
      mesh_(mesh),
      sequence_parallel_(sequence_parallel && mesh.size(Axis::tp) > 1) {
  const Range own = blocks.value_or(Range{0, config.layers});
  if (own.begin < 0 || own.end > config.layers || (blocks && own.size() < 1)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("GPT-2: expected at least one of blocks 0 to {}, found [{}, {})",
                            config.layers - 1, own.begin, own.end));
  }
  begin_ = own.begin;
  for (std::int64_t l = own.begin; l < own.end; ++l) add_block(l, random);
  const Axes samples = Axis::dp | Axis::sp;
  const Axes partial = sequence_parallel_ ? samples | Axis::tp : samples;
  const std::int64_t d = config.d_model;
  if (first() || last()) {
    embedding_.emplace(config.vocabulary, d, mesh, random, sequence_parallel_, deviation);
  }
  if (first()) {
    positions_ = Param<T>("positions", Array<T>({config.context, d}));
    fill_normal(positions_.value.view(), random.of(positions_.name), deviation);
    positions_.partial = partial;
  }
  if (!last()) return;
  const Group tp = mesh.group(Axis::tp);
  enter_head_ =
      sequence_parallel_ ? Exchange::gather_sequence(tp, 1) : Exchange::broadcast_parallel(tp);
  norm_weight_ = Param<T>("norm_weight", Array<T>({d}));
  for (T& value : norm_weight_.value.span()) value = narrow<T>(1);
  norm_bias_ = Param<T>("norm_bias", Array<T>({d}));
  norm_weight_.partial = norm_bias_.partial = partial;
}

template <class T>
void Gpt2<T>::add_block(std::int64_t number, const Random& random) {
  auto block = std::make_unique<TransformerBlock<T>>(config_.block(number), random);
  const double residual = deviation / std::sqrt(2.0 * static_cast<double>(config_.layers));
  const auto normal = [&](Param<T>& param, double by) {
    fill_normal(param.value.view(), random.of(param.name), by);
  };
  for (Param<T>* param : {&block->q_proj, &block->k_proj, &block->v_proj, &block->fc1})
    normal(*param, deviation);
  for (Param<T>* param : {&block->o_proj, &block->fc2}) normal(*param, residual);
  for (Param<T>* param : {&block->q_proj_bias, &block->k_proj_bias, &block->v_proj_bias,
                          &block->o_proj_bias, &block->fc1_bias, &block->fc2_bias})
    detail::zero(param->value.data(), param->value.bytes());
  if (mesh_.size(Axis::tp | Axis::sp) > 1) {
    block->parallelize(mesh_, sequence_parallel_);
    block->forget_other_forms();
  }
  recomputed_.emplace_back(module_of(*block, mesh_));
  blocks_.push_back(std::move(block));
}

template <class T>
void Gpt2<T>::expect_whole(std::string_view call) const {
  if (first() && last()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("GPT-2: {}: expected all {} blocks, found [{}, {})", call, config_.layers,
                          begin_, begin_ + static_cast<std::int64_t>(blocks_.size())));
}

template <class T>
Params<T> Gpt2<T>::params() {
  Params<T> all;
  if (last() && !first()) all.push_back(table());
  if (last()) all.insert(all.end(), {&norm_weight_, &norm_bias_});
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    const Params<T> more = module_of(**block, mesh_).params();
    all.insert(all.end(), more.begin(), more.end());
  }
  if (first()) all.insert(all.end(), {&positions_, table()});
  return all;
}

template <class T>
std::vector<Unit<T>> Gpt2<T>::units() {
  Params<T> head, embeddings;
  if (last()) head = {&norm_weight_, &norm_bias_};
  if (first()) embeddings = {&positions_, table()};
  std::vector<Unit<T>> units;
  if (first()) {
    embeddings.insert(embeddings.begin(), head.begin(), head.end());
    units.push_back({"embedding", std::move(embeddings)});
  }
  for (const auto& block : blocks_)
    units.push_back({block->config().name, module_of(*block, mesh_).params()});
  if (last() && !first()) {
    head.push_back(table());
    units.push_back({"head", std::move(head)});
  }
  return units;
}

template <class T>
Shape Gpt2<T>::activation(const Shape& ids) const {
  const int cuts = sequence_parallel_ ? mesh_.size(Axis::tp) : 1;
  return {ids[0], ids[1] / cuts, config_.d_model};
}

template <class T>
Module<T>& Gpt2<T>::layer(std::size_t l) {
  return config_.recompute ? recomputed_[l] : module_of(*blocks_[l], mesh_);
}

template class Gpt2<float>;
template class Gpt2<double>;
template class Gpt2<bf16>;

}  // namespace baton::transformer
