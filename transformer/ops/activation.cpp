#include <cmath>
#include <numbers>

#include "kernels.hpp"
#include "on_host.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transformer/ops/activation.cpp"
#include "hwy/foreach_target.h"  // compiles this file once per instruction set

#include "vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace baton::transformer::ops::HWY_NAMESPACE {
namespace {

// NaN passes through.
template <class T>
void relu(std::int64_t n, const T* x, T* y) {
  const auto zero = hn::Zero(Tag<T>());
  map(
      n, y, [=](auto value) HWY_ATTR { return hn::IfThenElse(hn::Lt(value, zero), zero, value); },
      x);
}

template <class T>
void relu_backward(std::int64_t n, const T* dy, const T* x, T* dx) {
  const auto zero = hn::Zero(Tag<T>());
  map(
      n, dx,
      [=](auto g, auto value) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(value, zero), g); }, dy,
      x);
}

/// Φ, the normal distribution's function, and exp(-x²/2) on the way to it.
struct Normal {
  Vector<float> distribution, exponential;
};
// Φ(-|x|) = exp(-x²/2) · t · P(t), t = 1 / (1 + p |x|), with P of degree 8 by Remez' algorithm: the
// largest relative error is 2.3e-8 for |x| < 12.6, beyond which the result is 0.
HWY_INLINE Normal normal(Vector<float> x) {
  constexpr float polynomial[] = {-0.0272619212f, 0.142970449f,   -0.27465553f,
                                  0.198584316f,   -0.0433523862f, 0.114522374f,
                                  0.115880478f,   0.136893155f,   0.136419077f};
  constexpr Tag<float> d;
  const auto one = hn::Set(d, 1.0f);
  const auto t = hn::Div(one, hn::MulAdd(hn::Set(d, 0.342f), hn::Abs(x), one));
  auto p = hn::Set(d, polynomial[0]);
  for (std::size_t i = 1; i < std::size(polynomial); ++i)
    p = hn::MulAdd(p, t, hn::Set(d, polynomial[i]));
  // Numbers so small that processors are slow with them are left out.
  const auto exponent = hn::Mul(hn::Mul(hn::Set(d, -0.5f), x), x);
  const auto e = hn::IfThenZeroElse(hn::Lt(exponent, hn::Set(d, -80.0f)), exponential(exponent));
  const auto tail = hn::Mul(hn::Mul(e, t), p);
  return {hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail)), e};
}

void gelu(std::int64_t n, const float* x, float* y) {
  map(
      n, y, [](auto value) HWY_ATTR { return hn::Mul(value, normal(value).distribution); }, x);
}

void gelu_backward(std::int64_t n, const float* dy, const float* x, float* dx) {
  const auto density =
      hn::Set(Tag<float>(), static_cast<float>(std::numbers::inv_sqrtpi / std::numbers::sqrt2));
  map(
      n, dx,
      [=](auto g, auto value) HWY_ATTR {
        const Normal at = normal(value);
        return hn::Mul(g, hn::MulAdd(hn::Mul(value, density), at.exponential, at.distribution));
      },
      dy, x);
}

// The library's function is accurate to the last bits.
double distribution(double x) { return 0.5 * std::erfc(-x * (1 / std::numbers::sqrt2)); }

void gelu(std::int64_t n, const double* x, double* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * distribution(x[i]);
}

void gelu_backward(std::int64_t n, const double* dy, const double* x, double* dx) {
  constexpr double density = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  for (std::int64_t i = 0; i < n; ++i)
    dx[i] = dy[i] * (distribution(x[i]) + x[i] * density * std::exp(-0.5 * x[i] * x[i]));
}

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)), with -2 u = x · (linear + cubic · x²).
constexpr double linear = -2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double cubic = 0.044715 * linear;

/// That of a vector, or of a number: 1 / (1 + exp(z)).
HWY_INLINE Vector<float> gate(Vector<float> z) {
  const auto one = hn::Set(Tag<float>(), 1.0f);
  return hn::Div(one, hn::Add(one, exponential(z)));
}
double gate(double z) { return 1 / (1 + std::exp(z)); }

void gelu_tanh(std::int64_t n, const float* x, float* y) {
  constexpr Tag<float> d;
  const auto first = hn::Set(d, static_cast<float>(linear)),
             third = hn::Set(d, static_cast<float>(cubic));
  map(
      n, y,
      [=](auto value) HWY_ATTR {
        const auto z = hn::Mul(value, hn::MulAdd(third, hn::Mul(value, value), first));
        return hn::Mul(value, gate(z));
      },
      x);
}

// With e = exp(z), z = -2 u: gate - gate · (1 - gate) · x · z', where 1 - gate = e · gate keeps its
// digits. Beyond `shut`, gate is 0 for good.
constexpr double shut = 80;

void gelu_tanh_backward(std::int64_t n, const float* dy, const float* x, float* dx) {
  constexpr Tag<float> d;
  const auto first = hn::Set(d, static_cast<float>(linear)),
             third = hn::Set(d, static_cast<float>(cubic)),
             three = hn::Set(d, static_cast<float>(3 * cubic)), one = hn::Set(d, 1.0f),
             most = hn::Set(d, static_cast<float>(shut));
  map(
      n, dx,
      [=](auto g, auto value) HWY_ATTR {
        const auto square = hn::Mul(value, value);
        const auto z = hn::Mul(value, hn::MulAdd(third, square, first));
        const auto slope = hn::Mul(value, hn::MulAdd(three, square, first));
        const auto e = exponential(z), open = hn::Div(one, hn::Add(one, e));
        const auto way = hn::Mul(hn::Mul(e, open), open);
        // Where the gate is 1 for good, the slope may be infinite.
        const auto bend = hn::IfThenZeroElse(hn::Eq(way, hn::Zero(d)), hn::Mul(way, slope));
        return hn::Mul(g, hn::IfThenZeroElse(hn::Gt(z, most), hn::Sub(open, bend)));
      },
      dy, x);
}

void gelu_tanh(std::int64_t n, const double* x, double* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * gate(x[i] * (linear + cubic * x[i] * x[i]));
}

void gelu_tanh_backward(std::int64_t n, const double* dy, const double* x, double* dx) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double square = x[i] * x[i], z = x[i] * (linear + cubic * square);
    const double slope = x[i] * (linear + 3 * cubic * square);
    const double e = std::exp(z), open = 1 / (1 + e), way = e * open * open;
    dx[i] = z > shut ? 0 : dy[i] * (open - (way == 0 ? 0 : way * slope));
  }
}

template <class T>
constexpr ActivationKernels<T> table{{&relu<T>, &gelu, &gelu_tanh},
                                     {&relu_backward<T>, &gelu_backward, &gelu_tanh_backward}};
const ActivationKernels<float>& f32_kernels() { return table<float>; }
const ActivationKernels<double>& f64_kernels() { return table<double>; }

}  // namespace
}  // namespace baton::transformer::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace baton::transformer {

std::string_view name(Activation activation) {
  constexpr std::string_view names[] = {"relu", "gelu", "gelu_tanh"};
  return names[static_cast<std::size_t>(activation)];
}

namespace ops {

BATON_DISPATCH(ActivationKernels)

template <class T>
void activate(Activation f, View<const std::type_identity_t<T>> x, View<T> y) {
  const auto apply = kernels<ActivationKernels<T>>().forward[static_cast<std::size_t>(f)];
  apply(x.size(), x.rows().data(), y.rows().data());
}

template <class T>
void activate_backward(Activation f, View<const std::type_identity_t<T>> dy,
                       View<const std::type_identity_t<T>> x, View<T> dx) {
  const auto apply = kernels<ActivationKernels<T>>().backward[static_cast<std::size_t>(f)];
  apply(x.size(), dy.rows().data(), x.rows().data(), dx.rows().data());
}

template <class T>
void add(View<const std::type_identity_t<T>> x, View<T> y) {
  if (!x.contiguous() || !y.contiguous()) {
    for (std::int64_t i = 0; i < x.extent(0); ++i) {
      if (x.rank() == 1) {
        y(i) += x(i);
      } else {
        ops::add<T>(x.select(0, i), y.select(0, i));
      }
    }
    return;
  }
  const T* const from = x.data();
  T* const to = y.data();
  const std::int64_t count = x.size();
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

#define BATON_INSTANTIATE(T)                                                          \
  template void activate(Activation, View<const T>, View<T>);                         \
  template void activate_backward(Activation, View<const T>, View<const T>, View<T>); \
  template void add(View<const T>, View<T>);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
#undef BATON_INSTANTIATE

}  // namespace ops
}  // namespace baton::transformer
#endif
