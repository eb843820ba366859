/// Folds of i8 and u8, and bitwise folds of all integers.

#include "kernel.cuh"

namespace baton::cuda {

const void* bitwise_fold(OpKind op) {
  switch (op) {
    case OpKind::bit_and:
      return kernel_of<OpKind::bit_and, std::uint8_t>();
    case OpKind::bit_or:
      return kernel_of<OpKind::bit_or, std::uint8_t>();
    case OpKind::bit_xor:
      return kernel_of<OpKind::bit_xor, std::uint8_t>();
    default:
      return nullptr;
  }
}

const void* byte_fold(OpKind op, Datatype type) {
  if (type == Datatype::i8) return fold_of<std::int8_t>(op);
  if (type == Datatype::u8) return fold_of<std::uint8_t>(op);
  return nullptr;
}

}  // namespace baton::cuda
