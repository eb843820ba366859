/// What attention and cross-entropy make softmax of.

#include <cmath>
#include <iterator>

#include "kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transformer/ops/softmax.cpp"
#include "hwy/foreach_target.h"  // compiles this file once per instruction set

#include "vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace baton::transformer::HWY_NAMESPACE {
namespace {

template <class T>
T maximum(std::int64_t n, const T* x) {
  constexpr Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto larger = [](Vector<T> a, Vector<T> b) HWY_ATTR { return hn::Max(a, b); };
  const auto at = [&](std::int64_t i, std::int64_t count) HWY_ATTR {
    return count == lanes ? hn::LoadU(d, x + i) : load_some(x + i, count, x[i]);
  };
  return hn::GetLane(hn::MaxOfLanes(d, reduce<T>(n, hn::Set(d, x[0]), larger, at)));
}

/// Highway's function takes what is not a number to 0.
HWY_INLINE Vector<double> exponential(Vector<double> x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(Tag<double>(), x));
}

// 2^n · exp(r), |r| <= ln(2) / 2, with a polynomial of degree 6 by Remez' algorithm (2e-9). What is
// below e^-87 is 0, above e^88 infinite. NaN passes through.
HWY_INLINE Vector<float> exponential(Vector<float> x) {
  constexpr Tag<float> d;
  constexpr hn::RebindToSigned<Tag<float>> integers;
  const auto value = [&](float v) HWY_ATTR { return hn::Set(d, v); };
  const auto n = hn::Round(hn::Mul(x, value(1.44269504f)));
  const auto r = hn::NegMulAdd(n, value(-2.12194440e-4f), hn::NegMulAdd(n, value(0.693359375f), x));
  constexpr float polynomial[] = {0.00138368353f, 0.00837482419f, 0.0416682251f, 0.166664198f,
                                  0.499999911f,   1.0f,           1.0f};
  auto p = value(polynomial[0]);
  for (std::size_t i = 1; i < std::size(polynomial); ++i)
    p = hn::MulAdd(p, r, value(polynomial[i]));
  const auto exponent =
      hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(integers, n), hn::Set(integers, 127)));
  const auto result = hn::Mul(p, hn::BitCast(d, exponent));
  return hn::IfThenElse(hn::Gt(x, value(88.0f)), value(HUGE_VALF),
                        hn::IfThenZeroElse(hn::Lt(x, value(-87.0f)), result));
}

template <class T>
T exponentials(std::int64_t n, const T* x, T shift, T* y) {
  constexpr Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto shifts = hn::Set(d, shift);
  const auto add = [](Vector<T> a, Vector<T> b) HWY_ATTR { return hn::Add(a, b); };
  const auto at = [&](std::int64_t i, std::int64_t count) HWY_ATTR __attribute__((always_inline)) {
    if (count == lanes) {
      const auto e = exponential(hn::Sub(hn::LoadU(d, x + i), shifts));
      hn::StoreU(e, d, y + i);
      return e;
    }
    const auto e = exponential(hn::Sub(load_some(x + i, count, shift), shifts));
    store_some(e, y + i, count);
    return hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(count)), e);
  };
  return hn::GetLane(hn::SumOfLanes(d, reduce<T>(n, hn::Zero(d), add, at)));
}

template <class T>
T dot(std::int64_t n, const T* x, const T* y) {
  return sum<T>(
      n, [](auto a, auto b) HWY_ATTR { return hn::Mul(a, b); }, x, y);
}

template <class T>
void scale(std::int64_t n, T factor, T* y) {
  const auto factors = hn::Set(Tag<T>(), factor);
  map(
      n, y, [=](auto value) HWY_ATTR { return hn::Mul(value, factors); }, y);
}

template <class T>
void times(std::int64_t n, const T* x, T* y) {
  map(
      n, y, [](auto a, auto b) HWY_ATTR { return hn::Mul(a, b); }, x, y);
}

template <class T>
void backward(std::int64_t n, const T* p, T shift, T factor, T* y) {
  const auto shifts = hn::Set(Tag<T>(), shift), factors = hn::Set(Tag<T>(), factor);
  map(
      n, y,
      [=](auto probability, auto gradient)
          HWY_ATTR { return hn::Mul(hn::Mul(probability, factors), hn::Sub(gradient, shifts)); },
      p, y);
}

template <class T>
constexpr SoftmaxKernels<T> table{&maximum<T>, &exponentials<T>, &dot<T>,
                                  &scale<T>,   &times<T>,        &backward<T>};
const SoftmaxKernels<float>& f32_kernels() { return table<float>; }
const SoftmaxKernels<double>& f64_kernels() { return table<double>; }

}  // namespace
}  // namespace baton::transformer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace baton::transformer {

BATON_DISPATCH(SoftmaxKernels)

}  // namespace baton::transformer
#endif
