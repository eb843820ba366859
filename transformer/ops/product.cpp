/// Products of matrices so small that libraries spend much of their time on arranging them.

#include <type_traits>

#include "kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transformer/ops/product.cpp"
// There are no arrays of vectors whose length only the processor knows.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include "hwy/foreach_target.h"  // compiles this file once per instruction set

#include "vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace baton::transformer::ops::HWY_NAMESPACE {
namespace {

// Rows x Vectors of the result stay in registers, of which x86 has 32 from AVX-512 on, else 16.
constexpr int rows_at_once = 6;
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
constexpr int vectors_at_once = 4;
#else
constexpr int vectors_at_once = 2;
#endif

/// The result's first Rows rows and Vectors vectors of columns.
template <int Rows, int Vectors, class T>
HWY_INLINE void block(const Product<T>& p, const T* a, const T* b, T* c) {
  constexpr Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Vector<T> sums[Rows][Vectors];
  for (auto& row : sums)
    for (auto& sum : row) sum = hn::Zero(d);
  for (std::int64_t i = 0; i < p.inner; ++i, a += p.a_column, b += p.b_row) {
    Vector<T> right[Vectors];
    for (int v = 0; v < Vectors; ++v) right[v] = hn::LoadU(d, b + v * lanes);
    for (int r = 0; r < Rows; ++r) {
      const auto left = hn::Set(d, a[r * p.a_row]);
      for (int v = 0; v < Vectors; ++v) sums[r][v] = hn::MulAdd(left, right[v], sums[r][v]);
    }
  }
  const auto factor = hn::Set(d, p.factor);
  const auto at = [&](int row, int vector) { return c + row * p.c_row + vector * lanes; };
  if (p.add) {  // asked outside the loops, as else sums would leave the registers
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < Vectors; ++v)
        hn::StoreU(hn::MulAdd(sums[r][v], factor, hn::LoadU(d, at(r, v))), d, at(r, v));
  } else {
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < Vectors; ++v) hn::StoreU(hn::Mul(sums[r][v], factor), d, at(r, v));
  }
}

/// All rows of some columns.
template <int Vectors, class T>
void columns(const Product<T>& p, const T* a, const T* b, T* c) {
  std::int64_t row = 0;
  const auto blocks = [&]<int Rows>(std::integral_constant<int, Rows>) HWY_ATTR {
    for (; row + Rows <= p.rows; row += Rows)
      block<Rows, Vectors>(p, a + row * p.a_row, b, c + row * p.c_row);
  };
  blocks(std::integral_constant<int, rows_at_once>());
  blocks(std::integral_constant<int, 4>());

  blocks(std::integral_constant<int, 2>());
  blocks(std::integral_constant<int, 1>());
}

template <class T>
void product(const Product<T>& p) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Tag<T>()));
  std::int64_t column = 0;
  for (; column + vectors_at_once * lanes <= p.columns; column += vectors_at_once * lanes)
    columns<vectors_at_once>(p, p.a, p.b + column, p.c + column);
  for (; column + lanes <= p.columns; column += lanes)
    columns<1>(p, p.a, p.b + column, p.c + column);
  for (; column < p.columns; ++column) {
    for (std::int64_t row = 0; row < p.rows; ++row) {
      T sum = 0;
      for (std::int64_t i = 0; i < p.inner; ++i)
        sum += p.a[row * p.a_row + i * p.a_column] * p.b[i * p.b_row + column];
      T& to = p.c[row * p.c_row + column];
      to = sum * p.factor + (p.add ? to : T(0));
    }
  }
}

template <class T>
constexpr ProductKernels<T> table{&product<T>};
const ProductKernels<float>& f32_kernels() { return table<float>; }
const ProductKernels<double>& f64_kernels() { return table<double>; }

}  // namespace
}  // namespace baton::transformer::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace baton::transformer::ops {

BATON_DISPATCH(ProductKernels)

}  // namespace baton::transformer::ops
#endif
