/// Folds of integers.

#include "dispatch.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "memory/host/fold_integer.cpp"
#include "hwy/foreach_target.h"  // compiles this file once per instruction set

#include "kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace baton::host::HWY_NAMESPACE {

/// Only min and max depend on the sign; other ops share the unsigned kernels.
template <class T>
FoldFunction signed_fold(OpKind op) {
  if (op == OpKind::min || op == OpKind::max) return select<Kernel, T>(op);
  return select<Kernel, std::make_unsigned_t<T>>(op);
}

static FoldFunction integer_fold_here(OpKind op, Datatype type) {
  switch (type) {
    case Datatype::i8:
      return signed_fold<std::int8_t>(op);
    case Datatype::u8:
      return select<Kernel, std::uint8_t>(op);
    case Datatype::i32:
      return signed_fold<std::int32_t>(op);
    case Datatype::u32:
      return select<Kernel, std::uint32_t>(op);
    case Datatype::i64:
      return signed_fold<std::int64_t>(op);
    case Datatype::u64:
      return select<Kernel, std::uint64_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace baton::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace baton::host {

HWY_EXPORT(integer_fold_here);
FoldFunction integer_fold(OpKind op, Datatype type, std::int64_t target) {
  return for_target(HWY_DISPATCH_TABLE(integer_fold_here), target)(op, type);
}

}  // namespace baton::host
#endif
