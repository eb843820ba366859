/// The block's computations: forward and backward of any form.

#include "block.hpp"
#include "shape_guard.hpp"
#include "weight_gradient.hpp"

namespace baton::transformer {
namespace {

/// The bias may be empty.
template <class T>
Array<T> linear_of(const Array<T>& x, const Param<T>& weight, const Param<T>& bias = {}) {
  const int last = x.shape().rank() - 1;
  auto y = Array<T>::uninitialized(x.shape().with(last, weight.value.extent(0)));
  linear<T>(x, weight.value, bias.value, y.view());
  return y;
}

/// The gradient by x of linear_of().
template <class T>
Array<T> input_gradient(const Array<T>& dy, const Param<T>& weight) {
  const int last = dy.shape().rank() - 1;
  auto dx = Array<T>::uninitialized(dy.shape().with(last, weight.value.extent(1)));
  linear_backward_input<T>(dy, weight.value, dx.view());
  return dx;
}

/// [b, s, n] as [b, s, heads, n / heads].
template <class T>
Array<T> by_heads(const Array<T>& x, std::int64_t heads) {
  return x.reshaped({x.extent(0), x.extent(1), heads, x.extent(2) / heads});
}
template <class T>
Array<T> joined_heads(const Array<T>& x) {
  return x.reshaped({x.extent(0), x.extent(1), x.extent(2) * x.extent(3)});
}

/// Each head of [b, s, g, d] `times` times in a row: [b, s, g · times, d].
template <class T>
Array<T> repeated_heads(const Array<T>& x, int times) {
  if (times == 1) return x;
  auto y = Array<T>::uninitialized(x.shape().with(2, x.extent(2) * times));
  for (std::int64_t head = 0; head < y.extent(2); ++head)
    assign<T>(x.view().select(2, head / times), y.view().select(2, head));
  return y;
}

/// Its derivative.
template <class T>
Array<T> summed_heads(const Array<T>& dy, int times) {
  if (times == 1) return dy;
  const std::int64_t heads = dy.extent(2) / times;
  Array<T> dx(dy.shape().with(2, heads));
  for (std::int64_t head = 0; head < dy.extent(2); ++head)
    add<T>(dy.view().select(2, head), dx.view().select(2, head / times));
  return dx;
}

}  // namespace

template <class T>
struct TransformerBlock<T>::Saved {
  Array<T> x, normed1;               // [b, s, d_model]
  Array<T> q, k, v, out;             // as attention has them: [b, s, h, d]
  Array<T> attended;                 // [b, s, h · d], of this rank's positions
  Array<T> h, normed2, pre, active;  // pre and active [b, s, d_ff], one where that is enough
  Array<Wide<T>> stats1, stats2;     // [rows, 2]
  Array<Wide<T>> log_sums;           // [b, h, s]
};

template <class T>
Dropout TransformerBlock<T>::hidden_dropout(std::string_view which, const Shape& x,
                                            const Context& context, const Form& form) const {
  Dropout dropout;
  if (!context.training || config_.hidden_dropout == 0) return dropout;
  dropout.p = config_.hidden_dropout;
  dropout.random = context.random.of(config_.name).of(which);
  dropout.piece = {x.with(1, x[1] * form.parts), {context.first_sample, form.part * x[1]}};
  return dropout;
}

template <class T>
AttentionOptions TransformerBlock<T>::attention_options(const Shape& q, const Context& context,
                                                        const Form& form) const {
  AttentionOptions options;
  options.causal = config_.causal;
  options.meanwhile = context.meanwhile;
  if (!context.training || config_.attention_dropout == 0) return options;
  options.dropout.p = config_.attention_dropout;
  options.dropout.random = context.random.of(config_.name).of("attention");
  options.dropout.piece = {{q[0], config_.heads, q[1], q[1]},
                           {context.first_sample, form.first_head}};
  return options;
}

template <class T>
Array<T> TransformerBlock<T>::forward(const Array<T>& x, Context& context, const Form& form) {
  expect_shape(config_.name + ": input", x.shape(), {any, any, config_.d_model});
  const auto normed = [&](const Array<T>& from, const Param<T>& weight, const Param<T>& bias,
                          Array<Wide<T>>& stats) {
    auto y = Array<T>::uninitialized(from.shape());
    stats = Array<Wide<T>>::uninitialized({from.extent(0) * from.extent(1), 2});
    layer_norm<T>(from, weight.value, bias.value, config_.epsilon, y.view(), stats.view());
    return y;
  };
  Saved saved;
  saved.x = x;
  saved.normed1 = form.attention.enter.forward(normed(x, norm1_weight, norm1_bias, saved.stats1));
  saved.h = form.attention.leave.forward(attend(saved.normed1, saved, context, form));
  if (!o_proj_bias.empty()) add_to_rows<T>(o_proj_bias.value, saved.h.view());
  hidden_dropout("attended", x.shape(), context, form).apply(saved.h.view());
  add<T>(x, saved.h.view());

  saved.normed2 =
      form.feed_forward.enter.forward(normed(saved.h, norm2_weight, norm2_bias, saved.stats2));
  Array<T> y = form.feed_forward.leave.forward(feed_forward(saved.normed2, saved, form));
  add_to_rows<T>(fc2_bias.value, y.view());
  hidden_dropout("feed_forward", x.shape(), context, form).apply(y.view());
  add<T>(saved.h, y.view());
  context.push(std::move(saved));
  return y;
}

template <class T>
Array<T> TransformerBlock<T>::backward(const Array<T>& dy, Context& context, const Form& form) {
  const Saved saved = context.pop<Saved>();
  expect_shape(config_.name + ": gradient of the output", dy.shape(), saved.x.shape());
  const auto dropped = [&](const Array<T>& d, std::string_view which) {
    const Dropout dropout = hidden_dropout(which, d.shape(), context, form);
    if (dropout.p == 0) return d;
    Array<T> changed = d.copy();
    dropout.apply(changed.view());
    return changed;
  };
  const auto through_norm = [&](const Array<T>& d, const Array<T>& from,
                                const Array<Wide<T>>& stats, Param<T>& weight, Param<T>& bias) {
    auto dx = Array<T>::uninitialized(from.shape());
    layer_norm_backward<T>(d, from, weight.value, stats, dx.view(), weight.grad.view(),
                           bias.grad.view());
    context.complete(weight);
    context.complete(bias);
    return dx;
  };
  const Array<T> df = dropped(dy, "feed_forward");
  add_rows<T>(df, fc2_bias.grad.view());
  context.complete(fc2_bias);
  const Array<T> dnormed2 =
      feed_forward_backward(form.feed_forward.leave.backward(df), saved, context, form);
  Array<T> dh = through_norm(dnormed2, saved.h, saved.stats2, norm2_weight, norm2_bias);
  add<T>(dy, dh.view());

  Array<T> dattended = dropped(dh, "attended");
  if (!o_proj_bias.empty()) {
    add_rows<T>(dattended, o_proj_bias.grad.view());
    context.complete(o_proj_bias);
  }
  const Array<T> dnormed1 =
      attend_backward(form.attention.leave.backward(std::move(dattended)), saved, context, form);
  Array<T> dx = through_norm(dnormed1, saved.x, saved.stats1, norm1_weight, norm1_bias);
  add<T>(dh, dx.view());
  return dx;
}

template <class T>
Array<T> TransformerBlock<T>::attend(const Array<T>& normed, Saved& saved, Context& context,
                                     const Form& form) {
  // Each is on its way while the next is computed.
  auto q =
      form.to_heads.start_forward(by_heads(linear_of(normed, *form.q, *form.q_bias), form.heads));
  const auto keys = [&](const Param<T>& weight, const Param<T>& bias) {
    return form.to_heads.start_forward(
        repeated_heads(by_heads(linear_of(normed, weight, bias), form.key_heads), form.repeats));
  };
  auto k = keys(*form.k, *form.k_bias), v = keys(*form.v, *form.v_bias);
  saved.q = q.wait(), saved.k = k.wait(), saved.v = v.wait();
  const Shape& shape = saved.q.shape();
  saved.out = Array<T>::uninitialized(shape);
  saved.log_sums = Array<Wide<T>>::uninitialized({shape[0], shape[2], shape[1]});
  attention<T>(saved.q, saved.k, saved.v, attention_options(shape, context, form), saved.out.view(),
               saved.log_sums.view());
  saved.attended = joined_heads(form.to_positions.forward(saved.out));
  return linear_of(saved.attended, *form.o);
}

template <class T>
Array<T> TransformerBlock<T>::attend_backward(Array<T> dy, const Saved& saved, Context& context,
                                              const Form& form) {
  auto dout_pending =
      form.to_positions.start_backward(by_heads(input_gradient(dy, *form.o), form.heads));
  weight_gradient(saved.attended, dy, *form.o, context,
                  advancing(context, dout_pending, form.to_positions));
  const Array<T> dout = dout_pending.wait();

  auto dq = Array<T>::uninitialized(saved.q.shape());
  auto dk = Array<T>::uninitialized(saved.k.shape());
  auto dv = Array<T>::uninitialized(saved.v.shape());
  attention_backward<T>(dout, saved.q, saved.k, saved.v, saved.out, saved.log_sums,
                        attention_options(saved.q.shape(), context, form), dq.view(), dk.view(),
                        dv.view());
  auto q_pending = form.to_heads.start_backward(std::move(dq));
  auto k_pending = form.to_heads.start_backward(std::move(dk));
  auto v_pending = form.to_heads.start_backward(std::move(dv));
  dq = joined_heads(q_pending.wait());
  Array<T> dnormed = input_gradient(dq, *form.q);
  dk = joined_heads(summed_heads(k_pending.wait(), form.repeats));
  linear_backward_input<T>(dk, form.k->value, dnormed.view(), true);
  dv = joined_heads(summed_heads(v_pending.wait(), form.repeats));
  linear_backward_input<T>(dv, form.v->value, dnormed.view(), true);

  // The gradient by the input is summed over ranks while those by the weights are computed.
  auto pending = form.attention.enter.start_backward(std::move(dnormed));
  const Meanwhile meanwhile = advancing(context, pending, form.attention.enter);
  weight_gradient(saved.normed1, dq, *form.q, *form.q_bias, context, meanwhile);
  weight_gradient(saved.normed1, dk, *form.k, *form.k_bias, context, meanwhile);
  weight_gradient(saved.normed1, dv, *form.v, *form.v_bias, context, meanwhile);
  return pending.wait();
}

template <class T>
Array<T> TransformerBlock<T>::feed_forward(const Array<T>& normed, Saved& saved, const Form& form) {
  const Activation f = config_.activation;
  saved.active = Array<T>::uninitialized(normed.shape().with(2, form.fc1->value.extent(0)));
  saved.pre =
      derivable_from_result(f) ? saved.active : Array<T>::uninitialized(saved.active.shape());
  linear_activate<T>(f, normed, form.fc1->value, form.fc1_bias->value, saved.pre.view(),
                     saved.active.view());
  return linear_of(saved.active, *form.fc2);
}

template <class T>
Array<T> TransformerBlock<T>::feed_forward_backward(Array<T> dy, const Saved& saved,
                                                    Context& context, const Form& form) {
  Array<T> dactive = input_gradient(dy, *form.fc2);
  activate_backward<T>(config_.activation, dactive, saved.pre, dactive.view());
  auto pending = form.feed_forward.enter.start_backward(input_gradient(dactive, *form.fc1));
  const Meanwhile meanwhile = advancing(context, pending, form.feed_forward.enter);
  weight_gradient(saved.active, dy, *form.fc2, context, meanwhile);
  weight_gradient(saved.normed2, dactive, *form.fc1, *form.fc1_bias, context, meanwhile);
  return pending.wait();
}

#define BATON_INSTANTIATE(T)                                                              \
  template Array<T> TransformerBlock<T>::forward(const Array<T>&, Context&, const Form&); \
  template Array<T> TransformerBlock<T>::backward(const Array<T>&, Context&, const Form&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
