#pragma once
/// The first place where numbers are not finite.

#include <string>

#include "sequential.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// The first values of a forward pass that are infinite or NaN on any rank: "the input", "the
/// weights fc1.weight", "the output of layer gelu"; "the loss" if all of these are finite. `x` is
/// this rank's, and may have no samples. Collective over `world` and the model's mesh.
template <class T>
std::string first_not_finite(Sequential<T>& model, const Array<T>& x, Context context,
                             Communicator& world);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
