#pragma once
/// PyTorch's element types and ops in the library's terms.

#include <c10/core/ScalarType.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <cstdint>

#include "baton/types.hpp"

namespace baton::pytorch {

/// An element of a tensor: `per` elements of a datatype of the library.
struct Elements {
  Datatype type;
  std::int64_t per = 1;
};

/// For data that is only moved: every type of PyTorch.
Elements moved(at::ScalarType type);

/// For data that is reduced: complex numbers are pairs of floats, booleans are bytes. Throws
/// std::invalid_argument where `op` is not defined on the type.
Elements reduced(at::ScalarType type, const c10d::ReduceOp& op);

/// The library's op. Of booleans, sum and max are "or", product and min are "and". The factor of
/// PREMUL_SUM has been applied before: it is a sum.
Op op_of(at::ScalarType type, const c10d::ReduceOp& op);

}  // namespace baton::pytorch
