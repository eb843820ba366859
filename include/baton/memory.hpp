#pragma once
/// The executor's interface to the memory in which data lies.

#include <cstddef>

#include "baton/types.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// into[i] = left[i] (+) right[i]; `into` may be `left` or `right`, no other overlap.
using FoldFunction = void (*)(void* into, const void* left, const void* right, std::size_t count);
/// data[i] /= ranks
using DivideFunction = void (*)(void* data, std::size_t count, int ranks);

namespace host {

/// How many instruction sets this machine can run folds with. All give the same bits.
int simd_level_count();
/// Name of an instruction set: "AVX3", "AVX2", "SSE4" …; level 0 is the best.
const char* simd_level_name(int level);
/// The fold of an op on a datatype with the best instruction set. Null where the op is not defined
/// on the type.
FoldFunction fold(OpKind op, Datatype type);
/// The same with a given instruction set, from 0 to simd_level_count() - 1.
FoldFunction fold(OpKind op, Datatype type, int simd_level);
/// The readable reference: one plain loop, no SIMD.
FoldFunction reference_fold(OpKind op, Datatype type);
/// The division of avg with the best instruction set. `ranks` is at least 1.
DivideFunction divide(Datatype type);
/// The same with a given instruction set, from 0 to simd_level_count() - 1.
DivideFunction divide(Datatype type, int simd_level);
/// The readable reference: one plain loop, no SIMD.
DivideFunction reference_divide(Datatype type);

}  // namespace host
}  // namespace baton
#pragma GCC visibility pop
