/// Each operation runs on the thread's accelerator, or on the host, which computes bf16 as f32, or
/// is emulated.

#include "ops.hpp"

#include "../accelerator.hpp"
#include "../emulated.hpp"
#include "../instantiation.hpp"
#include "../shape_guard.hpp"
#include "expect.hpp"
#include "on_host.hpp"
#include "widened.hpp"

namespace baton::transformer {

using ops::expect_contiguous;
using ops::expect_values;

namespace {

/// `x` with another last extent.
Shape with_last(const Shape& x, std::int64_t extent) {
  return x.rank() == 0 ? Shape{extent} : x.with(x.rank() - 1, extent);
}

void expect_matrix(std::string_view what, const Shape& shape) {
  expect_shape(what, shape, {any, any});
}

/// Operations of a product with `weight`, of the rows of y [.., out].
template <class Rows, class Weight>
double operations(const Rows& y, const Weight& weight) {
  return 2 * static_cast<double>(y.rows().extent(0)) * static_cast<double>(weight.size());
}

template <Real T>
void check_linear(const View<const T>& x, const View<const T>& weight, const View<const T>& bias,
                  const View<T>& y) {
  expect_matrix("linear: weight", weight.shape());
  expect_values("linear: weight", weight);
  expect_shape("linear: x", x.shape(), with_last(x.shape(), weight.extent(1)));
  expect_shape("linear: y", y.shape(), with_last(x.shape(), weight.extent(0)));
  if (!bias.empty()) expect_shape("linear: bias", bias.shape(), {weight.extent(0)});
  expect_contiguous("linear", x, weight, bias, y);
}

}  // namespace

template <Real T>
void linear(View<const std::type_identity_t<T>> x, View<const std::type_identity_t<T>> weight,
            View<const std::type_identity_t<T>> bias, View<T> y) {
  check_linear<T>(x, weight, bias, y);
  if (Accelerator* const device = accelerator()) return device->linear(x, weight, bias, y);
  if (emulates()) return emulate(operations(y, weight));
  ops::widened([](auto... views) { ops::linear<Wide<T>>(views...); }, x, weight, bias, y);
}

template <Real T>
void linear_backward_input(View<const std::type_identity_t<T>> dy,
                           View<const std::type_identity_t<T>> weight, View<T> dx, bool add) {
  expect_matrix("linear_backward_input: weight", weight.shape());
  expect_values("linear_backward_input: weight", weight);
  expect_shape("linear_backward_input: dy", dy.shape(), with_last(dy.shape(), weight.extent(0)));
  expect_shape("linear_backward_input: dx", dx.shape(), with_last(dy.shape(), weight.extent(1)));
  expect_contiguous("linear_backward_input", dy, weight, dx);
  if (Accelerator* const device = accelerator())
    return device->linear_backward_input(dy, weight, dx, add);
  if (emulates()) return emulate(operations(dy, weight));
  ops::widened([&](auto... views) { ops::linear_backward_input<Wide<T>>(views..., add); }, dy,
               weight, dx);
}

template <Real T>
void linear_backward_weight(View<const std::type_identity_t<T>> x,
                            View<const std::type_identity_t<T>> dy, View<T> dweight, View<T> dbias,
                            const Meanwhile& meanwhile) {
  expect_matrix("linear_backward_weight: dweight", dweight.shape());
  expect_values("linear_backward_weight: dweight", dweight);
  expect_shape("linear_backward_weight: x", x.shape(), with_last(x.shape(), dweight.extent(1)));
  expect_shape("linear_backward_weight: dy", dy.shape(), with_last(x.shape(), dweight.extent(0)));
  if (!dbias.empty())
    expect_shape("linear_backward_weight: dbias", dbias.shape(), {dweight.extent(0)});
  expect_contiguous("linear_backward_weight", x, dy, dweight, dbias);
  if (Accelerator* const device = accelerator())
    return device->linear_backward_weight(x, dy, dweight, dbias);
  if (emulates()) return emulate(operations(dy, dweight), meanwhile);
  ops::widened([&](auto... views) { ops::linear_backward_weight<Wide<T>>(views..., meanwhile); }, x,
               dy, dweight, dbias);
}

template <Real T>
void add_to_rows(View<const std::type_identity_t<T>> bias, View<T> y) {
  expect_shape("add_to_rows: bias", bias.shape(), {y.rows().extent(1)});
  expect_contiguous("add_to_rows", bias, y);
  if (Accelerator* const device = accelerator()) return device->add_to_rows(bias, y);
  ops::widened([](auto... views) { ops::add_to_rows<Wide<T>>(views...); }, bias, y);
}

template <Real T>
void add_rows(View<const std::type_identity_t<T>> x, View<T> sum) {
  expect_shape("add_rows: sum", sum.shape(), {x.rows().extent(1)});
  expect_contiguous("add_rows", x, sum);
  if (Accelerator* const device = accelerator()) return device->add_rows(x, sum);
  ops::widened([](auto... views) { ops::add_rows<Wide<T>>(views...); }, x, sum);
}

template <Real T>
void layer_norm(View<const std::type_identity_t<T>> x, View<const std::type_identity_t<T>> weight,
                View<const std::type_identity_t<T>> bias, double epsilon, View<T> y,
                View<Wide<T>> stats) {
  const View<const T> rows = x.rows();
  expect_shape("layer_norm: weight", weight.shape(), {rows.extent(1)});
  expect_shape("layer_norm: bias", bias.shape(), {rows.extent(1)});
  expect_shape("layer_norm: y", y.shape(), x.shape());
  expect_shape("layer_norm: stats", stats.shape(), {rows.extent(0), 2});
  expect_contiguous("layer_norm", x, weight, bias, y, stats);
  if (Accelerator* const device = accelerator())
    return device->layer_norm(x, weight, bias, epsilon, y, stats);
  ops::widened([&](auto x, auto weight, auto bias, auto y,
                   auto stats) { ops::layer_norm<Wide<T>>(x, weight, bias, epsilon, y, stats); },
               x, weight, bias, y, stats);
}

template <Real T>
void layer_norm_backward(View<const std::type_identity_t<T>> dy,
                         View<const std::type_identity_t<T>> x,
                         View<const std::type_identity_t<T>> weight, View<const Wide<T>> stats,
                         View<T> dx, View<T> dweight, View<T> dbias) {
  const View<const T> rows = x.rows();
  const Shape row{rows.extent(1)};
  expect_shape("layer_norm_backward: dy", dy.shape(), x.shape());
  expect_shape("layer_norm_backward: weight", weight.shape(), row);
  expect_shape("layer_norm_backward: stats", stats.shape(), {rows.extent(0), 2});
  expect_shape("layer_norm_backward: dx", dx.shape(), x.shape());
  expect_shape("layer_norm_backward: dweight", dweight.shape(), row);
  expect_shape("layer_norm_backward: dbias", dbias.shape(), row);
  expect_contiguous("layer_norm_backward", dy, x, weight, stats, dx, dweight, dbias);
  if (Accelerator* const device = accelerator())
    return device->layer_norm_backward(dy, x, weight, stats, dx, dweight, dbias);
  ops::widened([](auto... views) { ops::layer_norm_backward<Wide<T>>(views...); }, dy, x, weight,
               stats, dx, dweight, dbias);
}

template <Real T>
void activate(Activation f, View<const std::type_identity_t<T>> x, View<T> y) {
  expect_shape("activate: y", y.shape(), x.shape());
  expect_contiguous("activate", x, y);
  if (Accelerator* const device = accelerator()) return device->activate(f, x, y);
  ops::widened([&](auto... views) { ops::activate<Wide<T>>(f, views...); }, x, y);
}

template <Real T>
void activate_backward(Activation f, View<const std::type_identity_t<T>> dy,
                       View<const std::type_identity_t<T>> x, View<T> dx) {
  expect_shape("activate_backward: dy", dy.shape(), x.shape());
  expect_shape("activate_backward: dx", dx.shape(), x.shape());
  expect_contiguous("activate_backward", dy, x, dx);
  if (Accelerator* const device = accelerator()) return device->activate_backward(f, dy, x, dx);
  ops::widened([&](auto... views) { ops::activate_backward<Wide<T>>(f, views...); }, dy, x, dx);
}

template <Real T>
void linear_activate(Activation f, View<const std::type_identity_t<T>> x,
                     View<const std::type_identity_t<T>> weight,
                     View<const std::type_identity_t<T>> bias, View<T> pre, View<T> y) {
  check_linear<T>(x, weight, bias, pre);
  expect_shape("linear_activate: y", y.shape(), pre.shape());
  expect_contiguous("linear_activate", y);
  if (Accelerator* const device = accelerator())
    return device->linear_activate(f, x, weight, bias, pre, y);
  if (emulates()) return emulate(operations(y, weight));
  if constexpr (std::is_same_v<T, Wide<T>>) {
    ops::linear_activate<T>(f, x, weight, bias, pre, y);
  } else {  // of what was rounded
    linear<T>(x, weight, bias, pre);
    activate<T>(f, pre, y);
  }
}

template <Real T>
void add(View<const std::type_identity_t<T>> x, View<T> y) {
  expect_shape("add: y", y.shape(), x.shape());
  if (Accelerator* const device = accelerator()) return device->add(x, y);
  ops::widened([](auto... views) { ops::add<Wide<T>>(views...); }, x, y);
}

template <Real T>
void embedding(View<const std::int32_t> ids, View<const std::type_identity_t<T>> table,
               std::int64_t first, View<T> y) {
  expect_shape("embedding: ids", ids.shape(), {any});
  expect_matrix("embedding: table", table.shape());
  expect_values("embedding: table", table);
  expect_shape("embedding: y", y.shape(), {ids.extent(0), table.extent(1)});
  expect_contiguous("embedding", ids, table, y);
  if (Accelerator* const device = accelerator()) return device->embedding(ids, table, first, y);
  ops::widened([&](auto table, auto y) { ops::embedding<Wide<T>>(ids, table, first, y); }, table,
               y);
}

template <Real T>
void embedding_backward(View<const std::int32_t> ids, View<const std::type_identity_t<T>> dy,
                        std::int64_t first, View<T> dtable) {
  expect_shape("embedding_backward: ids", ids.shape(), {any});
  expect_matrix("embedding_backward: dtable", dtable.shape());
  expect_shape("embedding_backward: dy", dy.shape(), {ids.extent(0), dtable.extent(1)});
  expect_contiguous("embedding_backward", ids, dy, dtable);
  if (Accelerator* const device = accelerator())
    return device->embedding_backward(ids, dy, first, dtable);
  ops::widened(
      [&](auto dy, auto dtable) { ops::embedding_backward<Wide<T>>(ids, dy, first, dtable); }, dy,
      dtable);
}

template <Real T>
double mse(View<const T> y, View<const std::type_identity_t<T>> target, double elements,
           View<std::type_identity_t<T>> dy) {
  expect_shape("mse: target", target.shape(), y.shape());
  if (!dy.empty()) expect_shape("mse: dy", dy.shape(), y.shape());
  expect_contiguous("mse", y, target, dy);
  if (Accelerator* const device = accelerator()) return device->mse(y, target, elements, dy);
  double loss = 0;
  ops::widened(
      [&](auto y, auto target, auto dy) { loss = ops::mse<Wide<T>>(y, target, elements, dy); }, y,
      target, dy);
  return loss;
}

template <Real T>
double cross_entropy(View<const T> logits, View<const std::int32_t> targets, double elements,
                     View<std::type_identity_t<T>> dlogits) {
  expect_matrix("cross_entropy: logits", logits.shape());
  expect_shape("cross_entropy: targets", targets.shape(), {logits.extent(0)});
  if (!dlogits.empty()) expect_shape("cross_entropy: dlogits", dlogits.shape(), logits.shape());
  expect_contiguous("cross_entropy", logits, targets, dlogits);
  if (Accelerator* const device = accelerator())
    return device->cross_entropy(logits, targets, elements, dlogits);
  double loss = 0;
  ops::widened(
      [&](auto logits, auto dlogits) {
        loss = ops::cross_entropy<Wide<T>>(logits, targets, elements, dlogits);
      },
      logits, dlogits);
  return loss;
}

#define BATON_INSTANTIATE(T)                                                                      \
  template BATON_INSTANTIATION void linear(View<const T>, View<const T>, View<const T>, View<T>); \
  template BATON_INSTANTIATION void linear_backward_input(View<const T>, View<const T>, View<T>,  \
                                                          bool);                                  \
  template BATON_INSTANTIATION void linear_backward_weight(View<const T>, View<const T>, View<T>, \
                                                           View<T>, const Meanwhile&);            \
  template BATON_INSTANTIATION void add_to_rows(View<const T>, View<T>);                          \
  template BATON_INSTANTIATION void add_rows(View<const T>, View<T>);                             \
  template BATON_INSTANTIATION void layer_norm(View<const T>, View<const T>, View<const T>,       \
                                               double, View<T>, View<Wide<T>>);                   \
  template BATON_INSTANTIATION void layer_norm_backward(View<const T>, View<const T>,             \
                                                        View<const T>, View<const Wide<T>>,       \
                                                        View<T>, View<T>, View<T>);               \
  template BATON_INSTANTIATION void activate(Activation, View<const T>, View<T>);                 \
  template BATON_INSTANTIATION void activate_backward(Activation, View<const T>, View<const T>,   \
                                                      View<T>);                                   \
  template BATON_INSTANTIATION void linear_activate(Activation, View<const T>, View<const T>,     \
                                                    View<const T>, View<T>, View<T>);             \
  template BATON_INSTANTIATION void add(View<const T>, View<T>);                                  \
  template BATON_INSTANTIATION void embedding(View<const std::int32_t>, View<const T>,            \
                                              std::int64_t, View<T>);                             \
  template BATON_INSTANTIATION void embedding_backward(View<const std::int32_t>, View<const T>,   \
                                                       std::int64_t, View<T>);                    \
  template BATON_INSTANTIATION double mse(View<const T>, View<const T>, double, View<T>);         \
  template BATON_INSTANTIATION double cross_entropy(View<const T>, View<const std::int32_t>,      \
                                                    double, View<T>);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
