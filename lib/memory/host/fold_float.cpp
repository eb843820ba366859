/// Folds and division of f32 and f64.

#include "dispatch.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "memory/host/fold_float.cpp"
#include "hwy/foreach_target.h"  // compiles this file once per instruction set

#include "kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace baton::host::HWY_NAMESPACE {

static FoldFunction float_fold_here(OpKind op, Datatype type) {
  if (type == Datatype::f32) return select<Kernel, float>(op);
  if (type == Datatype::f64) return select<Kernel, double>(op);
  return nullptr;
}

static DivideFunction float_divide_here(Datatype type) {
  if (type == Datatype::f32) return &divide<float>;
  if (type == Datatype::f64) return &divide<double>;
  return nullptr;
}

}  // namespace baton::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace baton::host {

HWY_EXPORT(float_fold_here);
FoldFunction float_fold(OpKind op, Datatype type, std::int64_t target) {
  return for_target(HWY_DISPATCH_TABLE(float_fold_here), target)(op, type);
}

HWY_EXPORT(float_divide_here);
DivideFunction float_divide(Datatype type, std::int64_t target) {
  return for_target(HWY_DISPATCH_TABLE(float_divide_here), target)(type);
}

}  // namespace baton::host
#endif
