#pragma once
/// The kernels that call units.hpp.

#include "kernel_table.hpp"
#include "units.hpp"

namespace baton::cuda {

template <OpKind op, class T>
__global__ void __launch_bounds__(threads)
    fold_batch(const __grid_constant__ Batch<Strided<3>> batch) {
  for (std::uint32_t unit = blockIdx.x; unit < batch.units; unit += gridDim.x)
    fold_unit<op, T>(batch, unit, threadIdx.x);
}

template <OpKind op, class T>
const void* kernel_of() {
  return reinterpret_cast<const void*>(&fold_batch<op, Served<op, T>>);
}

/// The kernel of an op on T, except bitwise ops; null if there is none.
template <class T>
const void* fold_of(OpKind op) {
  switch (op) {
    case OpKind::sum:
    case OpKind::avg:
      return kernel_of<OpKind::sum, T>();
    case OpKind::prod:
      return kernel_of<OpKind::prod, T>();
    case OpKind::min:
      return kernel_of<OpKind::min, T>();
    case OpKind::max:
      return kernel_of<OpKind::max, T>();
    default:
      break;
  }
  if constexpr (std::integral<T>) {
    switch (op) {
      case OpKind::logical_and:
        return kernel_of<OpKind::logical_and, T>();
      case OpKind::logical_or:
        return kernel_of<OpKind::logical_or, T>();
      case OpKind::logical_xor:
        return kernel_of<OpKind::logical_xor, T>();
      default:
        break;
    }
  }
  return nullptr;
}

}  // namespace baton::cuda
