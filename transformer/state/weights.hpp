#pragma once
/// Weights of models in files, by the names and in the layouts of others.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "../param.hpp"
#include "safetensors.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// A tensor of a file of weights, as parameters of a model.
struct StoredTensor {
  std::string name;
  /// Names of whole parameters, of which the tensor has one after the other along dimension 0.
  std::vector<std::string> params;
  bool transposed = false;  ///< the file has [in, out], where parameters are [out, in]
};

/// The names and layouts of a model's weights in files.
struct WeightsFormat {
  std::vector<StoredTensor> tensors;  ///< in which every parameter is once
  /// May stand before all names in a file that is read.
  std::string prefix;
  /// Tensors that a file that is read may also have, each with the elements of another one.
  std::vector<std::pair<std::string, std::string>> copies;
  /// Tensors that a file that is read may also have, which are not used.
  std::vector<std::string> ignored;
};

/// The format in which each parameter has its own name and layout. Of a pipeline, `params` are
/// those of this rank's stages, and the format has those of all. Collective over the mesh. Throws
/// Error(invalid_argument) on all ranks if two parameters have one name and are not shared
/// (ParamInfo::shared).
template <class T>
WeightsFormat own_names(const Params<T>& params, const Mesh& mesh);

/// Writes the whole values of parameters, whatever the mesh, in the parameters' type. Of a
/// pipeline, `params` are those of this rank's stages (Pipeline::params()), and the file has those
/// of all; a parameter that two stages share is there once. The same values make the same file. The
/// first rank writes; where that fails, a file that was there stays as it was. Collective over the
/// mesh. Throws Error(invalid_argument) on all ranks if the file cannot be written, a parameter has
/// no values at present (DataParallel::with_values()), or `format` has other parameters.
template <class T>
void save_weights(const Params<T>& params, const WeightsFormat& format,
                  const std::filesystem::path& file, const Mesh& mesh,
                  const Metadata& metadata = {});

/// Sets the values of parameters, or this rank's parts of them, to a file's, converted as
/// SafetensorsFile::read() does. Stages that share a parameter all get it. The first rank reads.
/// Optimizers are made afterwards. Collective over the mesh. Throws Error(invalid_argument) that
/// names the file, on all ranks and before anything has changed, if it is torn, has a tensor too
/// few or too many, or one of another shape.
template <class T>
void load_weights(const Params<T>& params, const WeightsFormat& format,
                  const std::filesystem::path& file, const Mesh& mesh);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
