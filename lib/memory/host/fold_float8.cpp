/// Folds and division of f8e4m3 and f8e5m2.

#include "dispatch.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "memory/host/fold_float8.cpp"
#include "hwy/foreach_target.h"  // compiles this file once per instruction set

#include "narrow_floats-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace baton::host::HWY_NAMESPACE {

static FoldFunction float8_fold_here(OpKind op, Datatype type) {
  if (type == Datatype::f8e4m3) return select<Kernel, f8e4m3>(op);
  if (type == Datatype::f8e5m2) return select<Kernel, f8e5m2>(op);
  return nullptr;
}

static DivideFunction float8_divide_here(Datatype type) {
  if (type == Datatype::f8e4m3) return &divide<f8e4m3>;
  if (type == Datatype::f8e5m2) return &divide<f8e5m2>;
  return nullptr;
}

}  // namespace baton::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace baton::host {

HWY_EXPORT(float8_fold_here);
FoldFunction float8_fold(OpKind op, Datatype type, std::int64_t target) {
  return for_target(HWY_DISPATCH_TABLE(float8_fold_here), target)(op, type);
}

HWY_EXPORT(float8_divide_here);
DivideFunction float8_divide(Datatype type, std::int64_t target) {
  return for_target(HWY_DISPATCH_TABLE(float8_divide_here), target)(type);
}

}  // namespace baton::host
#endif
