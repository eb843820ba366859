/// Folds of f8e4m3 and f8e5m2.

#include "kernel.cuh"

namespace baton::cuda {

const void* float8_fold(OpKind op, Datatype type) {
  if (type == Datatype::f8e4m3) return fold_of<f8e4m3>(op);
  if (type == Datatype::f8e5m2) return fold_of<f8e5m2>(op);
  return nullptr;
}

}  // namespace baton::cuda
