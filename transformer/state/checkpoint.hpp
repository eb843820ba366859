#pragma once
/// All that training goes on from, in one file.

#include <filesystem>
#include <optional>

#include "../optimizer.hpp"
#include "../random.hpp"
#include "../training/data_parallel.hpp"
#include "safetensors.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Where training is, beside what model and optimizer have.
struct TrainingPosition {
  std::int64_t step = 0;               ///< the next one
  Random random;                       ///< that all steps draw from
  std::optional<CosineSchedule> rate;  ///< of the learning rate; the optimizer's own is kept, too
  Metadata notes;                      ///< the caller's
};

/// Writes a checkpoint: the values of all parameters, and all that the optimizer keeps of them
/// (Optimizer::kept()), as whole tensors, whatever the mesh and however `replicas` divides them;
/// the optimizer's steps and learning rate; and the position. `model` may be a Pipeline: the file
/// has the parameters of all stages, and once what two of them share. The first rank writes; where
/// that fails or is interrupted, a file that was there stays as it was. Collective over the mesh.
/// Throws Error(invalid_argument) on all ranks if the file cannot be written.
///
/// The file is a safetensors file with tensors "parameters.NAME" of type T and
/// "optimizer.KEPT.NAME" of type Wide<T>, of each parameter's name without "_shard", sorted by
/// these.
template <class T>
void save_checkpoint(const std::filesystem::path& file, Model<T>& model, DataParallel<T>& replicas,
                     Optimizer<T>& optimizer, const Mesh& mesh, const TrainingPosition& position);

/// Sets the values of all parameters and the state of the optimizer to a checkpoint's, and returns
/// its position. Steps after it are those that would have come after save_checkpoint(): bit for bit
/// on the same mesh with the same `replicas`, and otherwise but for the order of sums. Settings of
/// model and optimizer other than the learning rate are the caller's. The first rank reads.
/// Collective over the mesh. Throws Error(invalid_argument) that names the file, on all ranks and
/// before anything has changed, if it is torn, or of another type, optimizer or model.
template <class T>
TrainingPosition load_checkpoint(const std::filesystem::path& file, Model<T>& model,
                                 DataParallel<T>& replicas, Optimizer<T>& optimizer,
                                 const Mesh& mesh);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
