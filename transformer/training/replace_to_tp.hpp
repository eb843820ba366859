#pragma once
/// A model in its tensor-parallel form.

#include <cstdint>
#include <map>
#include <string>

#include "sequential.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Along which dimension a layer's weight is cut: `column` by outputs, `row` by inputs, as Megatron
/// names them after the transposed matrix.
enum class Cut : std::uint8_t { column, row };

/// Replaces the Linear layers that `cuts` names by ColumnParallelLinear and RowParallelLinear over
/// axis tp, with this rank's part of their weights as they are now. Activations stay cut from a
/// column-parallel layer to the next layer if that is row-parallel and only activation functions
/// lie between; elsewhere they are whole on every rank.
///
/// The mesh must outlive the model. Throws Error(invalid_argument), and leaves the model as it was,
/// if a name is no Linear layer's, or the cut dimension is no multiple of the number of ranks.
template <class T>
void replace_to_tp(Sequential<T>& model, const std::map<std::string, Cut>& cuts, const Mesh& mesh);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
