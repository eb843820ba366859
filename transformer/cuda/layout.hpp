#pragma once
/// From operands to what kernels are told; plain C++, tested without a device.

#include "../accelerator.hpp"
#include "map_units.hpp"
#include "tiles.hpp"

namespace baton::transformer::cuda {

/// Strides of the elements of `shape` for two operands, in as few dimensions as they need.
Strides<2> strides_of(const Shape& shape, const std::array<std::int64_t, Shape::max_rank>& a,
                      const std::array<std::int64_t, Shape::max_rank>& b);
inline bool contiguous(const Strides<2>& strides) {
  return strides.rank == 0 ||
         (strides.rank == 1 && strides.stride[0][0] == 1 && strides.stride[1][0] == 1);
}

/// Dropout of an operand: its strides, then those of its elements' places in the whole.
struct Dropped {
  Strides<2> strides;
  Mask mask;
  std::uint64_t first = 0;
};
Dropped dropped(const Dropout& dropout, const Operand& x);

SgdFactors sgd_factors(const SgdStep& step);
AdamStep adam_step(const AdamWStep& step);

/// The arguments of forward; elements are T.
template <class T>
Attention<T> attention_of(const ConstOperand& q, const ConstOperand& k, const ConstOperand& v,
                          const AttentionOptions& options, const Operand& out,
                          const Operand& log_sums);
/// The same of backward; `dots`: scratch of as many floats as log_sums.
template <class T>
Attention<T> attention_backward_of(const ConstOperand& dout, const ConstOperand& q,
                                   const ConstOperand& k, const ConstOperand& v,
                                   const ConstOperand& out, const ConstOperand& log_sums,
                                   const AttentionOptions& options, float* dots, const Operand& dq,
                                   const Operand& dk, const Operand& dv);

/// A matrix product as cuBLASLt takes it, by columns: c [n, m] = a [n, k] · b [k, m], where each of
/// a and b may lie transposed.
struct Product {
  std::int64_t n = 0, m = 0, k = 0;
  bool a_transposed = false, b_transposed = false;
  std::int64_t a_leading = 0, b_leading = 0, c_leading = 0;
  auto operator<=>(const Product&) const = default;
};
/// Of rows that are contiguous: c [rows, out] = x [rows, in] · weight [out, in]ᵀ.
Product linear_product(std::int64_t rows, std::int64_t in, std::int64_t out);
/// dx [rows, in] = dy [rows, out] · weight [out, in].
Product input_product(std::int64_t rows, std::int64_t in, std::int64_t out);
/// dweight [out, in] = dyᵀ [out, rows] · x [rows, in].
Product weight_product(std::int64_t rows, std::int64_t in, std::int64_t out);

}  // namespace baton::transformer::cuda
