#pragma once
/// The kernels around units.hpp.

#include "kernel_table.hpp"
#include "units.hpp"

namespace baton::cuda {

template <OpKind op, class T>
__global__ void __launch_bounds__(threads)
    fold_batch(const __grid_constant__ Batch<Strided<3>> batch) {
  for (std::uint32_t unit = blockIdx.x; unit < batch.units; unit += gridDim.x)
    fold_unit<op, T>(batch, unit, threadIdx.x);
}

inline const void* address_of(void (*kernel)(Batch<Strided<3>>)) {
  return reinterpret_cast<const void*>(kernel);
}

/// The kernel of an operation on numbers; null for others.
template <class T>
const void* fold_of_numbers(OpKind op) {
  switch (op) {
    case OpKind::sum:
    case OpKind::avg:
      return address_of(&fold_batch<OpKind::sum, T>);
    case OpKind::prod:
      return address_of(&fold_batch<OpKind::prod, T>);
    case OpKind::min:
      return address_of(&fold_batch<OpKind::min, T>);
    case OpKind::max:
      return address_of(&fold_batch<OpKind::max, T>);
    default:
      return nullptr;
  }
}

/// The kernel of an operation on integers. Only min and max depend on the sign, and bitwise
/// operations not on the size, so types share kernels.
template <class T>
const void* fold_of_integers(OpKind op) {
  using Unsigned = std::make_unsigned_t<T>;
  switch (op) {
    case OpKind::min:
    case OpKind::max:
      return fold_of_numbers<T>(op);
    case OpKind::logical_and:
      return address_of(&fold_batch<OpKind::logical_and, Unsigned>);
    case OpKind::logical_or:
      return address_of(&fold_batch<OpKind::logical_or, Unsigned>);
    case OpKind::logical_xor:
      return address_of(&fold_batch<OpKind::logical_xor, Unsigned>);
    default:
      return fold_of_numbers<Unsigned>(op);
  }
}

}  // namespace baton::cuda
