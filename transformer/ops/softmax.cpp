/// The parts of softmax, for attention and cross-entropy.

#include <cmath>

#include "kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transformer/ops/softmax.cpp"
#include "hwy/foreach_target.h"  // compiles this file once per instruction set

#include "vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace baton::transformer::ops::HWY_NAMESPACE {
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
}  // namespace baton::transformer::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace baton::transformer::ops {

BATON_DISPATCH(SoftmaxKernels)

}  // namespace baton::transformer::ops
#endif
