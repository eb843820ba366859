/// Loops over vectors of whatever width the instruction set has, compiled once for each.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

// Highway's include guard for what is compiled once per instruction set.
#if defined(BATON_TRANSFORMER_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef BATON_TRANSFORMER_VECTORS_INL
#undef BATON_TRANSFORMER_VECTORS_INL
#else
#define BATON_TRANSFORMER_VECTORS_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace baton::transformer::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vector = hn::Vec<Tag<T>>;

/// `count` elements, fewer than a vector has, and `rest` in the other lanes.
template <class T>
HWY_INLINE Vector<T> load_some(const T* from, std::int64_t count, T rest) {
  constexpr Tag<T> d;
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  std::fill(std::copy_n(from, count, lanes), lanes + hn::MaxLanes(d), rest);
  return hn::Load(d, lanes);
}
template <class T>
HWY_INLINE void store_some(Vector<T> value, T* to, std::int64_t count) {
  constexpr Tag<T> d;
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  hn::Store(value, d, lanes);
  std::copy_n(lanes, count, to);
}

/// x, or the bound that it is beyond. What is not a number stays so.
HWY_INLINE Vector<float> clamped(float least, Vector<float> x, float most) {
  constexpr Tag<float> d;
  const auto low = hn::Set(d, least), high = hn::Set(d, most);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
  // These machines' instructions give the second argument if one is not a number.
  return hn::Min(high, hn::Max(low, x));
#else
  const auto above = hn::IfThenElse(hn::Lt(x, low), low, x);
  return hn::IfThenElse(hn::Gt(above, high), high, above);
#endif
}

/// 2^n · exp(r), |r| <= ln(2) / 2, with a polynomial of degree 6 by Remez' algorithm (2e-9). What
/// is below e^-87.6 is 0, above e^88.4 infinite. NaN passes through.
HWY_INLINE Vector<float> exponential(Vector<float> x) {
  constexpr Tag<float> d;
  constexpr hn::RebindToSigned<Tag<float>> integers;
  const auto value = [&](float v) HWY_ATTR { return hn::Set(d, v); };
  x = clamped(-88.0f, x, 89.0f);
  // If a float's unit is 1, adding rounds; the last bits are then n and the exponent's bias.
  const auto units = value(0x1.8p23f + 127);
  const auto shifted = hn::MulAdd(x, value(1.44269504f), units);
  const auto n = hn::Sub(shifted, units);
  const auto r = hn::NegMulAdd(n, value(-2.12194440e-4f), hn::NegMulAdd(n, value(0.693359375f), x));
  constexpr float polynomial[] = {0.00138368353f, 0.00837482419f, 0.0416682251f, 0.166664198f,
                                  0.499999911f,   1.0f,           1.0f};
  auto p = value(polynomial[0]);
  for (std::size_t i = 1; i < std::size(polynomial); ++i)
    p = hn::MulAdd(p, r, value(polynomial[i]));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(integers, shifted));
  return hn::Mul(p, hn::BitCast(d, exponent));
}

/// Highway's function takes what is not a number to 0.
HWY_INLINE Vector<double> exponential(Vector<double> x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(Tag<double>(), x));
}

/// to[i] = op(from[i]...) for n elements; `to` may be a `from`.
template <class T, class Op, class... From>
HWY_INLINE void map(std::int64_t n, T* to, const Op& op, const From*... from) {
  constexpr Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(op(hn::LoadU(d, from + i)...), d, to + i);
  if (i < n) store_some(op(load_some(from + i, n - i, T(0))...), to + i, n - i);
}

/// Combines op(i, lanes from i on, all or `count` of them) of n elements: in four strands, then
/// these.
template <class T, class Combine, class Op>
HWY_INLINE Vector<T> reduce(std::int64_t n, Vector<T> neutral, const Combine& combine,
                            const Op& op) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Tag<T>()));
  auto a = neutral, b = neutral, c = neutral, e = neutral;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = combine(a, op(i, lanes));
    b = combine(b, op(i + lanes, lanes));
    c = combine(c, op(i + 2 * lanes, lanes));
    e = combine(e, op(i + 3 * lanes, lanes));
  }
  for (; i + lanes <= n; i += lanes) a = combine(a, op(i, lanes));
  if (i < n) b = combine(b, op(i, n - i));
  return combine(combine(a, b), combine(c, e));
}

/// The sum of op(from[i]...) over n elements.
template <class T, class Op, class... From>
HWY_INLINE T sum(std::int64_t n, const Op& op, const From*... from) {
  constexpr Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto add = [](Vector<T> x, Vector<T> y) HWY_ATTR { return hn::Add(x, y); };
  const auto at = [&](std::int64_t i, std::int64_t count) HWY_ATTR {
    if (count == lanes) return op(hn::LoadU(d, from + i)...);
    return hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(count)),
                              op(load_some(from + i, count, T(0))...));
  };
  return hn::GetLane(hn::SumOfLanes(d, reduce<T>(n, hn::Zero(d), add, at)));
}

}  // namespace baton::transformer::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
