/// Folds and division of f16 and bf16.

#include "dispatch.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "memory/host/fold_half.cpp"
#include "hwy/foreach_target.h"  // compiles this file once per instruction set

#include "narrow_floats-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace baton::host::HWY_NAMESPACE {

static FoldFunction half_fold_here(OpKind op, Datatype type) {
  if (type == Datatype::f16) return select<Kernel, f16>(op);
  if (type == Datatype::bf16) return select<Kernel, bf16>(op);
  return nullptr;
}

static DivideFunction half_divide_here(Datatype type) {
  if (type == Datatype::f16) return &divide<f16>;
  if (type == Datatype::bf16) return &divide<bf16>;
  return nullptr;
}

}  // namespace baton::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace baton::host {

HWY_EXPORT(half_fold_here);
FoldFunction half_fold(OpKind op, Datatype type, std::int64_t target) {
  return for_target(HWY_DISPATCH_TABLE(half_fold_here), target)(op, type);
}

HWY_EXPORT(half_divide_here);
DivideFunction half_divide(Datatype type, std::int64_t target) {
  return for_target(HWY_DISPATCH_TABLE(half_divide_here), target)(type);
}

}  // namespace baton::host
#endif
