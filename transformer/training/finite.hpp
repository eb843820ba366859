#pragma once
/// Where numbers stop being finite.

#include <string>

#include "baton/export.hpp"
#include "sequential.hpp"

namespace BATON_API baton {
namespace transformer {

/// The first thing of a forward pass that is infinite or NaN on any rank: "the input", "the weights
/// fc1.weight", "the output of layer gelu"; "the loss" if all of these are finite. `x` is this
/// rank's, and may be without samples. Collective over `world` and the model's
/// mesh.
template <class T>
std::string first_not_finite(Sequential<T>& model, const Array<T>& x, Context context,
                             Communicator& world);

}  // namespace transformer
}  // namespace baton
