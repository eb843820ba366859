#pragma once
/// The kernels as cudaLaunchKernel takes them, given by the .cu files to the .cpp files.

#include "baton/types.hpp"

namespace baton::cuda {

/// Parameter Batch<Strided<3>>. Null if the op is not defined on the type, or the type is not in
/// the file's set.
const void* bitwise_fold(OpKind op);                 ///< all integers
const void* byte_fold(OpKind op, Datatype type);     ///< i8, u8
const void* integer_fold(OpKind op, Datatype type);  ///< 32 and 64 bits
const void* float8_fold(OpKind op, Datatype type);   ///< f8e4m3, f8e5m2
const void* half_fold(OpKind op, Datatype type);     ///< f16, bf16
const void* float_fold(OpKind op, Datatype type);    ///< f32, f64
/// For any type.
const void* fold_kernel(OpKind op, Datatype type);

/// Parameters Batch<Strided<1>> and int.
const void* divide_kernel(Datatype type);
/// Parameter Batch<Strided<2>>.
const void* copy_kernel();
/// Parameter Batch<Tiles>; the jobs say how much shared memory it needs.
const void* tile_kernel();

}  // namespace baton::cuda
