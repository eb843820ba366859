#include <algorithm>
#include <cmath>

#include "kernels.hpp"
#include "on_host.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transformer/ops/layer_norm.cpp"
#include "hwy/foreach_target.h"  // compiles this file once per instruction set

#include "vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace baton::transformer::ops::HWY_NAMESPACE {
namespace {

template <class T>
void norm_row(std::int64_t n, const T* x, const T* weight, const T* bias, T epsilon, T* y,
              T* stats) {
  constexpr Tag<T> d;
  const auto count = static_cast<T>(n);
  const T mean = sum<T>(
                     n, [](auto value) HWY_ATTR { return value; }, x) /
                 count;
  const auto means = hn::Set(d, mean);
  const T squares = sum<T>(
      n,
      [=](auto value) HWY_ATTR {
        const auto deviation = hn::Sub(value, means);
        return hn::Mul(deviation, deviation);
      },
      x);
  const T scale = 1 / std::sqrt(squares / count + epsilon);
  const auto scales = hn::Set(d, scale);
  map(
      n, y,
      [=](auto value, auto w, auto b)
          HWY_ATTR { return hn::MulAdd(hn::Mul(hn::Sub(value, means), scales), w, b); },
      x, weight, bias);
  stats[0] = mean;
  stats[1] = scale;
}

// With z = (x - mean) · scale and g = dy · weight: dx = scale · (g - mean(g) - z · mean(g · z)).
template <class T>
void norm_row_backward(std::int64_t n, const T* dy, const T* x, const T* weight, const T* stats,
                       T* dx, T* dweight, T* dbias) {
  constexpr Tag<T> d;
  const auto count = static_cast<T>(n);
  const auto means = hn::Set(d, stats[0]), scales = hn::Set(d, stats[1]);
  const auto z = [=](auto value) HWY_ATTR { return hn::Mul(hn::Sub(value, means), scales); };
  const auto mean_g =
      hn::Set(d, sum<T>(
                     n, [](auto g, auto w) HWY_ATTR { return hn::Mul(g, w); }, dy, weight) /
                     count);
  const auto mean_gz = hn::Set(
      d,
      sum<T>(
          n, [=](auto g, auto w, auto value) HWY_ATTR { return hn::Mul(hn::Mul(g, w), z(value)); },
          dy, weight, x) /
          count);
  const auto add = [](auto g, auto total) HWY_ATTR { return hn::Add(g, total); };
  map(n, dbias, add, dy, dbias);
  const auto add_product = [=](auto g, auto value, auto total)
                               HWY_ATTR { return hn::MulAdd(g, z(value), total); };
  map(n, dweight, add_product, dy, x, dweight);
  map(
      n, dx,
      [=](auto g, auto w, auto value) HWY_ATTR {
        const auto centred = hn::MulSub(g, w, mean_g);
        return hn::Mul(scales, hn::NegMulAdd(z(value), mean_gz, centred));
      },
      dy, weight, x);
}

template <class T>
constexpr LayerNormKernels<T> table{&norm_row<T>, &norm_row_backward<T>};
const LayerNormKernels<float>& f32_kernels() { return table<float>; }
const LayerNormKernels<double>& f64_kernels() { return table<double>; }

}  // namespace
}  // namespace baton::transformer::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace baton::transformer::ops {

BATON_DISPATCH(LayerNormKernels)

template <class T>
void layer_norm(View<const std::type_identity_t<T>> x, View<const std::type_identity_t<T>> weight,
                View<const std::type_identity_t<T>> bias, double epsilon, View<T> y,
                View<T> stats) {
  const View<const T> rows = x.rows();
  const std::int64_t n = rows.extent(1);
  const View<T> results = y.rows();
  const auto& kernel = kernels<LayerNormKernels<T>>();
  for (std::int64_t row = 0; row < rows.extent(0); ++row) {
    kernel.forward(n, &rows(row, 0), weight.data(), bias.data(), static_cast<T>(epsilon),
                   &results(row, 0), &stats(row, 0));
  }
}

template <class T>
void layer_norm_backward(View<const std::type_identity_t<T>> dy,
                         View<const std::type_identity_t<T>> x,
                         View<const std::type_identity_t<T>> weight,
                         View<const std::type_identity_t<T>> stats, View<T> dx, View<T> dweight,
                         View<T> dbias) {
  // Rows whose gradients are added up apart, so that rounding errors grow with their number's root.
  constexpr std::int64_t together = 64;
  const View<const T> rows = x.rows();
  const std::int64_t n = rows.extent(1);
  const View<const T> gradients = dy.rows();
  const View<T> results = dx.rows();
  const auto& kernel = kernels<LayerNormKernels<T>>();
  for (std::int64_t begin = 0; begin < rows.extent(0); begin += together) {
    Array<T> weight_sum({n}), bias_sum({n});
    for (std::int64_t row = begin; row < std::min(begin + together, rows.extent(0)); ++row) {
      kernel.backward(n, &gradients(row, 0), &rows(row, 0), weight.data(), &stats(row, 0),
                      &results(row, 0), weight_sum.data(), bias_sum.data());
    }
    ops::add<T>(weight_sum, dweight);
    ops::add<T>(bias_sum, dbias);
  }
}

#define BATON_INSTANTIATE(T)                                                                       \
  template void layer_norm(View<const T>, View<const T>, View<const T>, double, View<T>, View<T>); \
  template void layer_norm_backward(View<const T>, View<const T>, View<const T>, View<const T>,    \
                                    View<T>, View<T>, View<T>);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer::ops
#endif
