/// Folds of integers of 32 and 64 bits.

#include "kernel.cuh"

namespace baton::cuda {

const void* integer_fold(OpKind op, Datatype type) {
  switch (type) {
    case Datatype::i32:
      return fold_of<std::int32_t>(op);
    case Datatype::u32:
      return fold_of<std::uint32_t>(op);
    case Datatype::i64:
      return fold_of<std::int64_t>(op);
    case Datatype::u64:
      return fold_of<std::uint64_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace baton::cuda
