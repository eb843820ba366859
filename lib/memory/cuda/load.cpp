/// Loads all kernels.

#include "baton/cuda_runtime.hpp"
#include "kernel_table.hpp"
#include "kernels.hpp"

namespace baton::cuda {
namespace {

void load(const void* kernel) {
  cudaFuncAttributes attributes;  // the query loads the kernel
  check(cudaFuncGetAttributes(&attributes, kernel), "loading a kernel");
}

}  // namespace

const void* fold_kernel(OpKind op, Datatype type) {
  if (!defined_on(op, type)) return nullptr;
  if (is_float(type) && size_of(type) == 1) return float8_fold(op, type);
  if (is_float(type)) return size_of(type) == 2 ? half_fold(op, type) : float_fold(op, type);
  if (const void* kernel = bitwise_fold(op)) return kernel;
  return size_of(type) == 1 ? byte_fold(op, type) : integer_fold(op, type);
}

void load_kernels() {
  load(copy_kernel());
  load(tile_kernel());
  for (int t = 0; t < datatype_count; ++t) {
    const auto type = static_cast<Datatype>(t);
    load(divide_kernel(type));
    for (int op = 0; op < builtin_op_count; ++op) {
      if (const void* kernel = fold_kernel(static_cast<OpKind>(op), type)) load(kernel);
    }
  }
}

}  // namespace baton::cuda
