/// The vector kernels' operations on f16 and bf16, compiled once per instruction set. Highway 1.0's
/// own conversions truncate on some targets.

#include "kernels-inl.hpp"

#if defined(BATON_HALVES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef BATON_HALVES_INL
#undef BATON_HALVES_INL
#else
#define BATON_HALVES_INL
#endif

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
HWY_BEFORE_NAMESPACE();
namespace baton::host::HWY_NAMESPACE {

/// fp32 from the f16 in the low half of each lane.
template <class D32, class V>
HWY_INLINE hn::Vec<hn::Rebind<float, D32>> widen_f16(D32 d, V value) {
  const hn::Rebind<float, D32> df;
  const auto rebias = hn::Set(d, bits::f16_rebias), min_normal = hn::Set(d, bits::f16_min_normal);
  const auto sign = hn::ShiftLeft<16>(hn::And(value, hn::Set(d, 0x8000u)));
  const auto magnitude = hn::ShiftLeft<13>(hn::And(value, hn::Set(d, 0x7fffu)));
  const auto finite = hn::Add(magnitude, rebias);
  const auto max_finite = hn::Set(d, (0x7c00u << 13) - 1 + bits::f16_rebias);
  const auto special = hn::Lt(max_finite, finite);
  const auto wide = hn::Add(finite, hn::IfThenElseZero(special, rebias));
  const auto subnormal =
      hn::Sub(hn::BitCast(df, hn::Add(magnitude, min_normal)), hn::BitCast(df, min_normal));
  const auto result = hn::IfThenElse(hn::Lt(finite, min_normal), hn::BitCast(d, subnormal), wide);
  return hn::BitCast(df, hn::Or(result, sign));
}

/// The f16 nearest to each lane, in its low half. NaN must be canonical.
template <class D32, class V>
HWY_INLINE hn::Vec<D32> narrow_f16(D32 d, V value) {
  const hn::Rebind<float, D32> df;
  const auto round = hn::Set(d, bits::f16_subnormal_round);
  const auto wide = hn::BitCast(d, value);
  const auto magnitude = hn::And(wide, hn::Set(d, ~bits::sign));
  const auto subnormal =
      hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(df, magnitude), hn::BitCast(df, round))), round);
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1u));
  const auto normal =
      hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, hn::Set(d, 0xfffu - bits::f16_rebias)), odd));
  const auto special = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, bits::infinity)),
                                      hn::Set(d, 0x7e00u), hn::Set(d, 0x7c00u));
  const auto finite =
      hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, bits::f16_min_normal)), subnormal, normal);
  const auto half =
      hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, bits::f16_infinity)), finite, special);
  return hn::Or(half, hn::ShiftRight<16>(hn::AndNot(hn::Set(d, ~bits::sign), wide)));
}

/// fp32 rounded to the nearest bf16, in the high half of each lane. NaN must be canonical.
template <class D32, class V>
HWY_INLINE hn::Vec<D32> round_bf16(D32 d, V value) {
  const auto wide = hn::BitCast(d, value);
  const auto odd = hn::And(hn::ShiftRight<16>(wide), hn::Set(d, 1u));
  return hn::Add(wide, hn::Add(odd, hn::Set(d, 0x7fffu)));
}

/// `Op` on fp32, applied to the even and to the odd lanes of a vector of u16.
template <class Op>
struct Lifted<bf16, Op> {
  Op op;

  template <class D, class... V>
  HWY_INLINE hn::Vec<D> operator()(D d, V... values) const {
    const hn::RepartitionToWide<D> d32;
    const hn::Rebind<float, decltype(d32)> df;
    const auto low = hn::Set(d32, 0x0000ffffu);
    const auto even = op(df, hn::BitCast(df, hn::ShiftLeft<16>(hn::BitCast(d32, values)))...);
    const auto odd = op(df, hn::BitCast(df, hn::AndNot(low, hn::BitCast(d32, values)))...);
    return hn::BitCast(d, hn::Or(hn::ShiftRight<16>(round_bf16(d32, even)),
                                 hn::AndNot(low, round_bf16(d32, odd))));
  }
};

template <class Op>
struct Lifted<f16, Op> {
  Op op;

  template <class D, class... V>
  HWY_INLINE hn::Vec<D> operator()(D d, V... values) const {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
    // The F16C instructions do IEEE conversions: exact to fp32, back to nearest even.
    const hn::Half<D> dh;
    const hn::Rebind<hwy::float16_t, decltype(dh)> stored;
    const hn::Rebind<float, decltype(dh)> df;
    const auto lower = op(df, hn::PromoteTo(df, hn::BitCast(stored, hn::LowerHalf(dh, values)))...);
    const auto upper = op(df, hn::PromoteTo(df, hn::BitCast(stored, hn::UpperHalf(dh, values)))...);
    return hn::Combine(d, hn::BitCast(dh, hn::DemoteTo(stored, upper)),
                       hn::BitCast(dh, hn::DemoteTo(stored, lower)));
#else
    const hn::RepartitionToWide<D> d32;
    const hn::Rebind<float, decltype(d32)> df;
    const auto low = hn::Set(d32, 0x0000ffffu);
    const auto even = op(df, widen_f16(d32, hn::And(hn::BitCast(d32, values), low))...);
    const auto odd = op(df, widen_f16(d32, hn::ShiftRight<16>(hn::BitCast(d32, values)))...);
    return hn::BitCast(d, hn::Or(narrow_f16(d32, even), hn::ShiftLeft<16>(narrow_f16(d32, odd))));
#endif
  }
};

}  // namespace baton::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif
