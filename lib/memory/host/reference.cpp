/// The reference beside the vector kernels: one plain loop per op and datatype.

#include "element.hpp"

namespace baton::host {
namespace {

template <OpKind op, class T>
struct Loop {
  static void fold(void* into, const void* left, const void* right, std::size_t count) {
    fold_elements<op, T>(into, left, right, count);
  }
};

}  // namespace

FoldFunction reference_fold(OpKind op, Datatype type) {
  switch (type) {
    case Datatype::i8:
      return select<Loop, std::int8_t>(op);
    case Datatype::u8:
      return select<Loop, std::uint8_t>(op);
    case Datatype::i32:
      return select<Loop, std::int32_t>(op);
    case Datatype::u32:
      return select<Loop, std::uint32_t>(op);
    case Datatype::i64:
      return select<Loop, std::int64_t>(op);
    case Datatype::u64:
      return select<Loop, std::uint64_t>(op);
    case Datatype::f8e4m3:
      return select<Loop, f8e4m3>(op);
    case Datatype::f8e5m2:
      return select<Loop, f8e5m2>(op);
    case Datatype::f16:
      return select<Loop, f16>(op);
    case Datatype::bf16:
      return select<Loop, bf16>(op);
    case Datatype::f32:
      return select<Loop, float>(op);
    case Datatype::f64:
      return select<Loop, double>(op);
    case Datatype::user:
      break;
  }
  return nullptr;
}

DivideFunction reference_divide(Datatype type) {
  switch (type) {
    case Datatype::i8:
      return &divide_elements<std::int8_t>;
    case Datatype::u8:
      return &divide_elements<std::uint8_t>;
    case Datatype::i32:
      return &divide_elements<std::int32_t>;
    case Datatype::u32:
      return &divide_elements<std::uint32_t>;
    case Datatype::i64:
      return &divide_elements<std::int64_t>;
    case Datatype::u64:
      return &divide_elements<std::uint64_t>;
    case Datatype::f8e4m3:
      return &divide_elements<f8e4m3>;
    case Datatype::f8e5m2:
      return &divide_elements<f8e5m2>;
    case Datatype::f16:
      return &divide_elements<f16>;
    case Datatype::bf16:
      return &divide_elements<bf16>;
    case Datatype::f32:
      return &divide_elements<float>;
    case Datatype::f64:
      return &divide_elements<double>;
    case Datatype::user:
      break;
  }
  return nullptr;
}

}  // namespace baton::host
