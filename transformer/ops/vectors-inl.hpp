/// Loops over vectors of whatever width the instruction set has, compiled once for each.

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
namespace baton::transformer::HWY_NAMESPACE {

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

}  // namespace baton::transformer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
