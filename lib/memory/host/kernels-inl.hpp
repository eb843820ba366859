/// The vector kernels, compiled once per instruction set. Same bits as element.hpp.

#include "element.hpp"
#include "hwy/highway.h"

// Highway's include guard for code that is compiled once per instruction set.
#if defined(BATON_KERNELS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef BATON_KERNELS_INL
#undef BATON_KERNELS_INL
#else
#define BATON_KERNELS_INL
#endif

#if HWY_ARCH_ARM_V7
#error "ARMv7 NEON flushes subnormals to zero, which the numerics contract forbids"
#endif

HWY_BEFORE_NAMESPACE();
namespace baton::host::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128  // no vectors: the plain loop

template <OpKind op, class T>
struct Kernel {
  static void fold(void* into, const void* left, const void* right, std::size_t count) {
    fold_elements<op, T>(into, left, right, count);
  }
};

template <class T>
void divide(void* data, std::size_t count, int ranks) {
  divide_elements<T>(data, count, ranks);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// --- one vector --------------------------------------------------------------------------------

/// `value` with canonical NaNs.
template <class D, class V>
HWY_INLINE V canonical(D d, V value) {
  const V nan = hn::Set(d, std::numeric_limits<hn::TFromD<D> >::quiet_NaN());
  return hn::IfThenElse(hn::IsNaN(value), nan, value);
}

/// 1 if `value` is not 0, else 0; for unsigned lanes.
template <class D, class V>
HWY_INLINE V truth(D d, V value) {
  return hn::Min(value, hn::Set(d, 1));
}

/// The low half of the product. Bytes use 16-bit products of even and odd lanes.
template <class D, class V>
HWY_INLINE V multiply(D d, V left, V right) {
  if constexpr (sizeof(hn::TFromD<D>) == 1) {
    const hn::RepartitionToWide<D> wide;
    const auto low = hn::Set(wide, 0x00ff);
    const auto l = hn::BitCast(wide, left), r = hn::BitCast(wide, right);
    const auto even = hn::And(hn::Mul(l, r), low);
    const auto odd = hn::Mul(hn::ShiftRight<8>(l), hn::AndNot(low, r));
    return hn::BitCast(d, hn::Or(even, odd));
  } else {
    return hn::Mul(left, right);
  }
}

/// left (+) right. Logical ops need unsigned lanes.
template <OpKind op>
struct Combine {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V left, V right) const {
    constexpr bool floating = std::floating_point<hn::TFromD<D> >;
    if constexpr (floating && op == OpKind::sum) {
      return canonical(d, hn::Add(left, right));
    } else if constexpr (floating && op == OpKind::prod) {
      return canonical(d, hn::Mul(left, right));
    } else if constexpr (floating) {
      static_assert(op == OpKind::min || op == OpKind::max);
      // No value is less than a NaN, so the result would be left.
      const auto take_right = op == OpKind::min ? hn::Lt(right, left) : hn::Lt(left, right);
      const auto taken = hn::IfThenElse(hn::Or(take_right, hn::IsNaN(right)), right, left);
      return canonical(d, taken);
    } else if constexpr (op == OpKind::sum) {
      return hn::Add(left, right);
    } else if constexpr (op == OpKind::prod) {
      return multiply(d, left, right);
    } else if constexpr (op == OpKind::min) {
      return hn::Min(left, right);
    } else if constexpr (op == OpKind::max) {
      return hn::Max(left, right);
    } else if constexpr (op == OpKind::logical_and) {
      return hn::And(truth(d, left), truth(d, right));
    } else if constexpr (op == OpKind::logical_or) {
      return truth(d, hn::Or(left, right));
    } else if constexpr (op == OpKind::logical_xor) {
      return hn::Xor(truth(d, left), truth(d, right));
    } else if constexpr (op == OpKind::bit_and) {
      return hn::And(left, right);
    } else if constexpr (op == OpKind::bit_or) {
      return hn::Or(left, right);
    } else {
      static_assert(op == OpKind::bit_xor);
      return hn::Xor(left, right);
    }
  }
};

/// value / divisor, of f32 or f64.
template <class T>
struct Divide {
  T divisor;

  template <class D, class V>
  HWY_INLINE V operator()(D d, V value) const {
    return canonical(d, hn::Div(value, hn::Set(d, divisor)));
  }
};

/// An op on vectors of T. narrow_floats-inl.hpp adapts ops on fp32 to narrower floats.
template <class T, class Op>
struct Lifted : Op {};

// --- many vectors ------------------------------------------------------------------------------

template <class T>
struct LaneOf {
  using type = T;
};
template <NarrowFloat T>
struct LaneOf<T> {
  using type = decltype(T::bits);
};
template <class T>
using Lane = typename LaneOf<T>::type;
/// A whole vector of this instruction set, and a vector of 16 bytes for fewer elements.
template <class T>
using Wide = hn::ScalableTag<Lane<T> >;
template <class T>
using Narrow = hn::CappedTag<Lane<T>, 16 / sizeof(T)>;

/// into[i] = op(in[i]...) for `count` elements, at least one vector. The last vector may overlap
/// the one before, so it is computed before anything is written. Therefore `into` may be an `in`.
template <bool unroll, class D, class Op, class T = hn::TFromD<D>, class... In>
HWY_INLINE void transform(D d, Op op, std::size_t count, T* into, const In*... in) {
  const std::size_t lanes = hn::Lanes(d), last = count - lanes;
  const auto last_value = op(d, hn::LoadU(d, in + last)...);
  std::size_t i = 0;
  if constexpr (unroll) {
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      const std::size_t j = i + lanes, k = j + lanes, l = k + lanes;
      const auto value_i = op(d, hn::LoadU(d, in + i)...);
      const auto value_j = op(d, hn::LoadU(d, in + j)...);
      const auto value_k = op(d, hn::LoadU(d, in + k)...);
      const auto value_l = op(d, hn::LoadU(d, in + l)...);
      hn::StoreU(value_i, d, into + i);
      hn::StoreU(value_j, d, into + j);
      hn::StoreU(value_k, d, into + k);
      hn::StoreU(value_l, d, into + l);
    }
  }
  for (; i < last; i += lanes) hn::StoreU(op(d, hn::LoadU(d, in + i)...), d, into + i);
  hn::StoreU(last_value, d, into + last);
}

/// The same if `count` is at least one narrow vector; otherwise returns false.
template <class T, class Op, class... In>
HWY_INLINE bool transform_vectors(Op op, std::size_t count, Lane<T>* into, const In*... in) {
  if (count >= hn::Lanes(Wide<T>())) {
    // A vector of 8-bit floats already expands to four of fp32.
    transform<!Float8<T> >(Wide<T>(), op, count, into, in...);
    return true;
  }
  if constexpr (hn::MaxLanes(Wide<T>()) > hn::MaxLanes(Narrow<T>())) {
    if (count >= hn::Lanes(Narrow<T>())) {
      transform<false>(Narrow<T>(), op, count, into, in...);
      return true;
    }
  }
  return false;
}

template <OpKind op, class T>
struct Kernel {
  static void fold(void* into, const void* left, const void* right, std::size_t count) {
    if (!transform_vectors<T>(Lifted<T, Combine<op> >{}, count, static_cast<Lane<T>*>(into),
                              static_cast<const Lane<T>*>(left),
                              static_cast<const Lane<T>*>(right)))
      fold_elements<op, T>(into, left, right, count);
  }
};

/// Division of floats.
template <class T>
void divide(void* data, std::size_t count, int ranks) {
  using Number = std::conditional_t<NarrowFloat<T>, float, T>;
  const Lifted<T, Divide<Number> > by_ranks{{static_cast<Number>(ranks)}};
  if (!transform_vectors<T>(by_ranks, count, static_cast<Lane<T>*>(data),
                            static_cast<const Lane<T>*>(data)))
    divide_elements<T>(data, count, ranks);
}

#endif

}  // namespace baton::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
