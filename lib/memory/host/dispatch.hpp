#pragma once
/// The vector kernels by instruction set. `target` is one of Highway's target bits. Null if the op
/// is not defined on the type, or the type is not in the file's set.

#include <cstddef>
#include <cstdint>

#include "baton/memory.hpp"

// With all of AVX3_DL enabled (-march=native), Highway 1.0 still needs this request.
#if defined(__AVX512VBMI2__) && !defined(HWY_WANT_AVX3_DL)
#define HWY_WANT_AVX3_DL
#endif
#include "hwy/targets.h"

namespace baton::host {

FoldFunction integer_fold(OpKind op, Datatype type, std::int64_t target);
FoldFunction float_fold(OpKind op, Datatype type, std::int64_t target);   ///< f32, f64
FoldFunction float8_fold(OpKind op, Datatype type, std::int64_t target);  ///< f8e4m3, f8e5m2
FoldFunction half_fold(OpKind op, Datatype type, std::int64_t target);    ///< f16, bf16
DivideFunction float_divide(Datatype type, std::int64_t target);
DivideFunction float8_divide(Datatype type, std::int64_t target);
DivideFunction half_divide(Datatype type, std::int64_t target);

/// The entry for a target in a table that HWY_EXPORT made.
template <class Function, std::size_t entries>
Function for_target(Function const (&table)[entries], std::int64_t target) {
  if constexpr (entries == 1) {
    return table[0];  // only one target was compiled
  } else {
    hwy::ChosenTarget chosen;
    chosen.Update(target);
    return table[chosen.GetIndex()];
  }
}

}  // namespace baton::host
