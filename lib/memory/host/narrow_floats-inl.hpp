/// The vector kernels' ops on floats that fold in fp32, compiled once per instruction set. Highway
/// 1.0's own conversions truncate on some targets.

#include "kernels-inl.hpp"

#if defined(BATON_NARROW_FLOATS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef BATON_NARROW_FLOATS_INL
#undef BATON_NARROW_FLOATS_INL
#else
#define BATON_NARROW_FLOATS_INL
#endif

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
HWY_BEFORE_NAMESPACE();
namespace baton::host::HWY_NAMESPACE {

/// fp32 from an element of a format in the low bits of each lane.
template <class T, class D32, class V>
HWY_INLINE hn::Vec<hn::Rebind<float, D32>> widen_lanes(D32 d, V value) {
  using Format = bits::FormatOf<T>;
  constexpr int unused = 32 - 8 * static_cast<int>(sizeof(T));
  const hn::Rebind<float, D32> df;
  const hn::Rebind<std::int32_t, D32> di;  // compared as signed: instruction sets support that
  const auto signless = hn::Set(d, bits::sign - 1);
  const auto shifted = hn::ShiftLeft<unused>(value);
  const auto sign = hn::AndNot(signless, shifted);
  const auto magnitude = hn::ShiftRight<unused - Format::shift>(hn::And(shifted, signless));
  const auto normal = hn::Add(magnitude, hn::Set(d, Format::rebias));
  const auto min_normal = hn::Set(d, Format::min_normal);
  const auto subnormal =
      hn::Sub(hn::BitCast(df, hn::Add(magnitude, min_normal)), hn::BitCast(df, min_normal));
  const auto special =
      hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, (Format::overflow << Format::shift) - 1));
  const auto wide =
      hn::Or(normal, hn::BitCast(d, hn::IfThenElseZero(special, hn::Set(di, bits::infinity))));
  const auto tiny = hn::Lt(hn::BitCast(di, normal), hn::BitCast(di, min_normal));
  const auto result = hn::IfThenElse(hn::RebindMask(d, tiny), hn::BitCast(d, subnormal), wide);
  return hn::BitCast(df, hn::Or(result, sign));
}

/// The nearest element of a format to each lane, in its low bits. NaN must be canonical.
template <class T, class D32, class V>
HWY_INLINE hn::Vec<D32> narrow_lanes(D32 d, V value) {
  using Format = bits::FormatOf<T>;
  const hn::Rebind<float, D32> df;
  const hn::Rebind<std::int32_t, D32> di;
  const auto round = hn::Set(d, Format::subnormal_round);
  const auto wide = hn::BitCast(d, value);
  const auto magnitude = hn::And(wide, hn::Set(d, bits::sign - 1));
  const auto subnormal =
      hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(df, magnitude), hn::BitCast(df, round))), round);
  const auto odd = hn::And(hn::ShiftRight<Format::shift>(magnitude), hn::Set(d, 1u));
  constexpr std::uint32_t below_half = (1u << (Format::shift - 1)) - 1;
  const auto normal = hn::ShiftRight<Format::shift>(
      hn::Add(hn::Add(magnitude, hn::Set(d, below_half - Format::rebias)), odd));
  const auto is_subnormal = hn::Lt(hn::BitCast(di, magnitude), hn::Set(di, Format::min_normal));
  const auto finite =
      hn::IfThenElse(is_subnormal, hn::BitCast(di, subnormal),
                     hn::Min(hn::BitCast(di, normal), hn::Set(di, Format::overflow)));
  const auto sign = hn::BitCast(
      di, hn::ShiftRight<32 - 8 * sizeof(T)>(hn::AndNot(hn::Set(d, bits::sign - 1), wide)));
  if constexpr (Format::nan == Format::overflow) {  // this format's NaN has no sign
    const auto number = hn::Lt(finite, hn::Set(di, Format::nan));
    return hn::BitCast(d, hn::Or(finite, hn::IfThenElseZero(number, sign)));
  } else {
    const auto is_nan = hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, bits::infinity));
    const auto code = hn::IfThenElse(is_nan, hn::Set(di, Format::nan), finite);
    return hn::BitCast(d, hn::Or(code, sign));
  }
}

/// fp32 rounded to the nearest bf16, in the high half of each lane. NaN must be canonical.
template <class D32, class V>
HWY_INLINE hn::Vec<D32> round_bf16(D32 d, V value) {
  const auto wide = hn::BitCast(d, value);
  const auto odd = hn::And(hn::ShiftRight<16>(wide), hn::Set(d, 1u));
  return hn::Add(wide, hn::Add(odd, hn::Set(d, 0x7fffu)));
}

/// Applies `Op` on fp32 to the even and the odd lanes of a vector of u16.
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
    // The F16C instructions convert by IEEE rules: exact to fp32, back to nearest even.
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
    const auto even = op(df, widen_lanes<f16>(d32, hn::BitCast(d32, values))...);
    const auto odd = op(df, widen_lanes<f16>(d32, hn::ShiftRight<16>(hn::BitCast(d32, values)))...);
    return hn::BitCast(
        d, hn::Or(narrow_lanes<f16>(d32, even), hn::ShiftLeft<16>(narrow_lanes<f16>(d32, odd))));
#endif
  }
};

/// The same for each byte of 32-bit lanes.
template <Float8 T, class Op>
struct Lifted<T, Op> {
  Op op;

  template <class D, class... V>
  HWY_INLINE hn::Vec<D> operator()(D d, V... values) const {
    const hn::Repartition<std::uint32_t, D> d32;
    const auto low = hn::Or(at_byte<0>(d32, hn::BitCast(d32, values)...),
                            at_byte<1>(d32, hn::BitCast(d32, values)...));
    const auto high = hn::Or(at_byte<2>(d32, hn::BitCast(d32, values)...),
                             at_byte<3>(d32, hn::BitCast(d32, values)...));
    return hn::BitCast(d, hn::Or(low, high));
  }

 private:
  template <int byte, class D32, class... V>
  HWY_INLINE hn::Vec<D32> at_byte(D32 d, V... values) const {
    const hn::Rebind<float, D32> df;
    const auto result = op(df, widen_lanes<T>(d, hn::ShiftRight<8 * byte>(values))...);
    return hn::ShiftLeft<8 * byte>(narrow_lanes<T>(d, result));
  }
};

/// min or max by comparing codes, after a change to signed codes; no widening.
template <OpKind op, Float8 T>
struct Compared {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V left, V right) const {
    using Format = bits::FormatOf<T>;
    constexpr auto last = Format::nan == Format::overflow ? Format::nan - 1 : Format::overflow;
    const hn::RebindToSigned<D> di;
    const auto l = code(di, left), r = code(di, right);
    const auto take_right = op == OpKind::min ? hn::Lt(r, l) : hn::Lt(l, r);
    const auto taken = hn::IfThenElse(hn::RebindMask(d, take_right), right, left);
    const auto is_nan = hn::Gt(hn::Max(hn::Abs(l), hn::Abs(r)), hn::Set(di, last));
    return hn::IfThenElse(hn::RebindMask(d, is_nan), hn::Set(d, Format::nan), taken);
  }

 private:
  /// Maps both zeros to 0.
  template <class DI, class V>
  static HWY_INLINE hn::Vec<DI> code(DI di, V value) {
    const auto bits = hn::BitCast(di, value);
    const auto sign = hn::BroadcastSignBit(bits);
    return hn::Sub(hn::Xor(hn::And(bits, hn::Set(di, 0x7f)), sign), sign);
  }
};
template <Float8 T>
struct Lifted<T, Combine<OpKind::min>> : Compared<OpKind::min, T> {};
template <Float8 T>
struct Lifted<T, Combine<OpKind::max>> : Compared<OpKind::max, T> {};

}  // namespace baton::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif
