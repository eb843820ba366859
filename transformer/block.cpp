#include "block.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "accelerator.hpp"
#include "baton/error.hpp"
#include "shape_guard.hpp"

namespace baton::transformer {

void BlockConfig::check() const {
  const auto positive = [&](const char* what, std::int64_t value) {
    if (value >= 1) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {}: expected at least 1, found {}", name, what, value));
  };
  positive("d_model", d_model);
  positive("heads", heads);
  positive("d_ff", d_ff);
  positive("kv_heads", key_heads());
  expect_multiple(name + ": d_model", d_model, heads, "heads");
  expect_multiple(name + ": heads", heads, key_heads(), "kv_heads");
  for (const double p : {attention_dropout, hidden_dropout}) {
    if (p >= 0 && p < 1) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: dropout: expected at least 0 and below 1, found {}", name, p));
  }
}

template <class T>
TransformerBlock<T>::TransformerBlock(const BlockConfig& config, const Random& random)
    : config_(config) {
  config_.check();
  const std::int64_t d = config.d_model, kv = config.key_heads() * config.head_size();
  const auto named = [&](const char* name) { return config.name + "." + name; };
  const auto uniform = [&](Param<T>& param, const char* name, const Shape& shape,
                           std::int64_t inputs) {
    Array<T> value(shape);
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    fill_uniform(value.view(), random.of(named(name)), -bound, bound);
    param = Param<T>(named(name), value);
  };
  const auto constant = [&](Param<T>& param, const char* name, Wide<T> value) {
    const std::vector<T> values(static_cast<std::size_t>(d), narrow<T>(value));
    param = Param<T>(named(name), from_host<T>(View<const T>(values.data(), {d})));
  };
  constant(norm1_weight, "norm1_weight", 1);
  constant(norm1_bias, "norm1_bias", 0);
  constant(norm2_weight, "norm2_weight", 1);
  constant(norm2_bias, "norm2_bias", 0);
  uniform(q_proj, "q_proj", {d, d}, d);
  uniform(k_proj, "k_proj", {kv, d}, d);
  uniform(v_proj, "v_proj", {kv, d}, d);
  uniform(o_proj, "o_proj", {d, d}, d);
  if (config.attention_bias) {
    uniform(q_proj_bias, "q_proj_bias", {d}, d);
    uniform(k_proj_bias, "k_proj_bias", {kv}, d);
    uniform(v_proj_bias, "v_proj_bias", {kv}, d);
    uniform(o_proj_bias, "o_proj_bias", {d}, d);
  }
  uniform(fc1, "fc1", {config.d_ff, d}, d);
  uniform(fc1_bias, "fc1_bias", {config.d_ff}, d);
  uniform(fc2, "fc2", {d, config.d_ff}, config.d_ff);
  uniform(fc2_bias, "fc2_bias", {d}, config.d_ff);
  for (Param<T>* param : params()) param->partial = Axis::dp | Axis::sp;
}

template <class T>
void TransformerBlock<T>::parallelize(const Mesh& mesh, bool sequence_parallel) {
  const std::int64_t tp = mesh.size(Axis::tp), sp = mesh.size(Axis::sp);
  const auto named = [&](const char* what) { return config_.name + ": " + what; };
  expect_multiple(named("heads"), config_.heads, tp * sp, "ranks of axes tp and sp");
  expect_multiple(named("kv_heads"), config_.key_heads(), tp, "ranks of axis tp");
  expect_multiple(named("d_ff"), config_.d_ff, tp, "ranks of axis tp");
  const std::int64_t key_heads = config_.key_heads() / tp;
  if (key_heads % sp != 0) {  // then each is repeated
    expect_multiple(fmt::format("{}: ranks of axis sp, or kv_heads of it", config_.name), sp,
                    key_heads, "kv_heads on each rank of axis tp");
  }
  mesh_ = &mesh;
  sequence_parallel_ = sequence_parallel;
  const auto shard = [&](Param<T>& part, const Param<T>& whole, int dim) {
    const Placement placement{dim, Axis::tp};
    part = Param<T>(whole.name + "_shard", part_of<T>(whole.value, placement, mesh), placement);
    part.decays = whole.decays;
    part.partial = whole.partial;
  };
  shard(q_proj_shard, q_proj, 0);
  shard(k_proj_shard, k_proj, 0);
  shard(v_proj_shard, v_proj, 0);
  shard(o_proj_shard, o_proj, 1);
  if (config_.attention_bias) {
    shard(q_proj_bias_shard, q_proj_bias, 0);
    shard(k_proj_bias_shard, k_proj_bias, 0);
    shard(v_proj_bias_shard, v_proj_bias, 0);
  }
  shard(fc1_shard, fc1, 0);
  shard(fc1_bias_shard, fc1_bias, 0);
  shard(fc2_shard, fc2, 1);
  // With sequence parallelism each rank of axis tp has other positions of what these apply to.
  const Axes positions = sequence_parallel ? Axis::sp | Axis::tp : Axes(Axis::sp);
  for (Param<T>* param :
       {&norm1_weight, &norm1_bias, &norm2_weight, &norm2_bias, &o_proj_bias, &fc2_bias})
    param->partial = Axis::dp | positions;
}

template <class T>
void TransformerBlock<T>::forget_other_forms() {
  const Params<T> kept = params(parallel_form());
  for (Param<T>* param : {&q_proj,
                          &k_proj,
                          &v_proj,
                          &o_proj,
                          &q_proj_bias,
                          &k_proj_bias,
                          &v_proj_bias,
                          &fc1,
                          &fc1_bias,
                          &fc2,
                          &q_proj_shard,
                          &k_proj_shard,
                          &v_proj_shard,
                          &o_proj_shard,
                          &q_proj_bias_shard,
                          &k_proj_bias_shard,
                          &v_proj_bias_shard,
                          &fc1_shard,
                          &fc1_bias_shard,
                          &fc2_shard}) {
    if (std::find(kept.begin(), kept.end(), param) != kept.end()) continue;
    param->value.release();
    param->grad.release();
  }
}

template <class T>
void TransformerBlock<T>::require_parallel(std::string_view call) const {
  if (mesh_) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: {}: expected shards, found none: call parallelize() or "
                          "init_tensor_parallel_shards() first",
                          config_.name, call));
}

template <class T>
auto TransformerBlock<T>::only(Axis axis, std::string_view call) -> Form {
  require_parallel(call);
  const Axis other = axis == Axis::tp ? Axis::sp : Axis::tp;
  if (mesh_->size(other) == 1 && !sequence_parallel_) return form(axis, false);
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{}: {}: expected a block that is cut along axis {} alone, found {} ranks "
                  "of axis {}{}; forward_parallel() is for these",
                  config_.name, call, name(axis), mesh_->size(other), name(other),
                  sequence_parallel_ ? " and sequence parallelism" : ""));
}

template <class T>
auto TransformerBlock<T>::form(Axes axes, bool sequence_parallel) -> Form {
  if (!axes.empty()) require_parallel("a parallel form");
  Form form{};
  form.q = &q_proj, form.k = &k_proj, form.v = &v_proj, form.o = &o_proj;
  form.q_bias = &q_proj_bias, form.k_bias = &k_proj_bias, form.v_bias = &v_proj_bias;
  form.fc1 = &fc1, form.fc1_bias = &fc1_bias, form.fc2 = &fc2;
  form.heads = config_.heads, form.key_heads = config_.key_heads();
  if (axes.has(Axis::tp)) {
    form.q = &q_proj_shard, form.k = &k_proj_shard, form.v = &v_proj_shard;
    form.q_bias = &q_proj_bias_shard, form.k_bias = &k_proj_bias_shard;
    form.v_bias = &v_proj_bias_shard;
    form.o = &o_proj_shard, form.fc1 = &fc1_shard, form.fc1_bias = &fc1_bias_shard;
    form.fc2 = &fc2_shard;
    const int ranks = mesh_->size(Axis::tp), rank = mesh_->rank(Axis::tp);
    const Group tp = mesh_->group(Axis::tp);
    for (auto* region : {&form.attention, &form.feed_forward}) {
      region->enter =
          sequence_parallel ? Exchange::gather_sequence(tp, 1) : Exchange::broadcast_parallel(tp);
      region->leave =
          sequence_parallel ? Exchange::scatter_sequence(tp, 1) : Exchange::reduce_parallel(tp);
    }
    form.heads /= ranks, form.key_heads /= ranks;
    form.first_head = rank * form.heads;
    if (sequence_parallel) form.parts = ranks, form.part = rank;
  }
  if (axes.has(Axis::sp)) {
    const int ranks = mesh_->size(Axis::sp), rank = mesh_->rank(Axis::sp);
    const Group sp = mesh_->group(Axis::sp);
    form.to_heads = Exchange::exchange(sp, 2, 1);
    form.to_positions = Exchange::exchange(sp, 1, 2);
    if (form.key_heads % ranks != 0) form.repeats = ranks / static_cast<int>(form.key_heads);
    form.first_head += rank * (form.heads / ranks);
    form.part += rank * form.parts;
    form.parts *= ranks;
  }
  return form;
}

template <class T>
auto TransformerBlock<T>::parallel_form() -> Form {
  require_parallel("a parallel form");
  Axes axes;
  if (mesh_->size(Axis::tp) > 1) axes = axes | Axis::tp;
  if (mesh_->size(Axis::sp) > 1) axes = axes | Axis::sp;
  return form(axes, sequence_parallel_);
}

template <class T>
Params<T> TransformerBlock<T>::params(const Form& form) {
  Params<T> all = {&fc2_bias,     form.fc2,    form.fc1,      form.fc1_bias,
                   &norm2_weight, &norm2_bias, &o_proj_bias,  form.o,
                   form.q,        form.q_bias, form.k,        form.k_bias,
                   form.v,        form.v_bias, &norm1_weight, &norm1_bias};
  std::erase_if(all, [](const Param<T>* param) { return param->empty(); });
  return all;
}

template <class T>
Array<T> TransformerBlock<T>::forward(const Array<T>& x, Context& context) {
  return forward(x, context, form({}, false));
}
template <class T>
Array<T> TransformerBlock<T>::backward(const Array<T>& dy, Context& context) {
  return backward(dy, context, form({}, false));
}
template <class T>
Array<T> TransformerBlock<T>::forward_tensor_parallel(const Array<T>& x, Context& context) {
  return forward(x, context, only(Axis::tp, "forward_tensor_parallel"));
}
template <class T>
Array<T> TransformerBlock<T>::backward_tensor_parallel(const Array<T>& dy, Context& context) {
  return backward(dy, context, only(Axis::tp, "backward_tensor_parallel"));
}
template <class T>
Array<T> TransformerBlock<T>::forward_ulysses(const Array<T>& x_shard, Context& context) {
  return forward(x_shard, context, only(Axis::sp, "forward_ulysses"));
}
template <class T>
Array<T> TransformerBlock<T>::backward_ulysses(const Array<T>& dy_shard, Context& context) {
  return backward(dy_shard, context, only(Axis::sp, "backward_ulysses"));
}
template <class T>
Array<T> TransformerBlock<T>::forward_parallel(const Array<T>& x_shard, Context& context) {
  return forward(x_shard, context, parallel_form());
}
template <class T>
Array<T> TransformerBlock<T>::backward_parallel(const Array<T>& dy_shard, Context& context) {
  return backward(dy_shard, context, parallel_form());
}

template <class T>
std::vector<BudgetLine> TransformerBlock<T>::budget(const Shape& x_shard) {
  expect_shape(config_.name + ": input", x_shard, {any, any, config_.d_model});
  const Form form = parallel_form();
  std::vector<BudgetLine> lines;
  const auto line = [&](const char* layer, bool backward, const Exchange& exchange, const Shape& x,
                        int times = 1) {
    const auto [choice, sent] = exchange.planned<T>(x);
    if (sent == Traffic{}) return;
    lines.push_back({config_.name + "." + layer,
                     backward,
                     exchange.forward_op,
                     x,
                     times,
                     choice,
                     {sent.messages * times, sent.bytes * times}});
  };
  const Shape inside = form.attention.enter.output(x_shard);  // of the tensor-parallel region
  const std::int64_t head = config_.head_size();
  const Shape q{inside[0], inside[1], form.heads, head};
  const Shape k{inside[0], inside[1], form.key_heads * form.repeats, head};
  const bool alike = q == k;
  line("attention.enter", false, form.attention.enter, x_shard);
  line(alike ? "attention.qkv" : "attention.q", false, form.to_heads, q, alike ? 3 : 1);
  if (!alike) line("attention.kv", false, form.to_heads, k, 2);
  const Shape out = form.to_heads.output(q);
  line("attention.out", false, form.to_positions, out);
  line("attention.leave", false, form.attention.leave, inside);
  line("feed_forward.enter", false, form.feed_forward.enter, x_shard);
  line("feed_forward.leave", false, form.feed_forward.leave, inside);

  line("feed_forward.leave", true, form.feed_forward.leave.derivative(), x_shard);
  line("feed_forward.enter", true, form.feed_forward.enter.derivative(), inside);
  line("attention.leave", true, form.attention.leave.derivative(), x_shard);
  line("attention.out", true, form.to_positions.derivative(), q);
  const Exchange to_positions = form.to_heads.derivative();
  line(alike ? "attention.qkv" : "attention.q", true, to_positions, out, alike ? 3 : 1);
  if (!alike) line("attention.kv", true, to_positions, form.to_heads.output(k), 2);
  line("attention.enter", true, form.attention.enter.derivative(), inside);
  return lines;
}

template class TransformerBlock<float>;
template class TransformerBlock<double>;
template class TransformerBlock<bf16>;

}  // namespace baton::transformer
