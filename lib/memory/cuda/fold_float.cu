/// Folds of f32 and f64.

#include "kernel.cuh"

namespace baton::cuda {

const void* float_fold(OpKind op, Datatype type) {
  if (type == Datatype::f32) return fold_of<float>(op);
  if (type == Datatype::f64) return fold_of<double>(op);
  return nullptr;
}

}  // namespace baton::cuda
