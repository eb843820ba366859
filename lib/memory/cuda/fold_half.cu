/// Folds of f16 and bf16.

#include "kernel.cuh"

namespace baton::cuda {

const void* half_fold(OpKind op, Datatype type) {
  if (type == Datatype::f16) return fold_of<f16>(op);
  if (type == Datatype::bf16) return fold_of<bf16>(op);
  return nullptr;
}

}  // namespace baton::cuda
