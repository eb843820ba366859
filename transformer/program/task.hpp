#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../pipeline/runner.hpp"
#include "../training/step.hpp"
#include "options.hpp"

namespace baton::transformer::program {

/// Results on data that a model does not train on.
struct Validation {
  double loss = 0;
  std::optional<double> accuracy;  ///< of models that classify
};

/// How the layers of a model lie in the stages of a pipeline.
struct StageLayers {
  std::vector<Range> layers;    ///< of each stage; empty: there is no pipeline
  std::vector<double> seconds;  ///< of each layer, where they are cut by time
};

/// A model with its data, on the ranks of a mesh: what a training run makes its steps of. Data and
/// weights depend on the options only, not on the mesh. Calls are collective over the mesh.
template <class T>
class Task {
 public:
  virtual ~Task() = default;
  virtual Model<T>& model() = 0;
  /// Where ranks have other layers; otherwise null.
  virtual Pipeline<T>* pipeline() { return nullptr; }
  virtual const StageLayers& stages() const = 0;
  /// Steps of an epoch.
  virtual std::int64_t steps() const = 0;
  /// Samples, or tokens, of a step's batch on all ranks.
  virtual std::int64_t items(std::int64_t step) const = 0;
  virtual void start_epoch(int /*epoch*/) {}
  /// Makes a step of this epoch.
  virtual StepLoss step(std::int64_t step, DataParallel<T>& replicas, Optimizer<T>& optimizer,
                        const StepOptions& how) = 0;
  /// The whole output of the model, to compare; empty where there is none.
  virtual Array<T> output(DataParallel<T>& replicas) = 0;
  /// Whether outputs depend on a parameter.
  virtual bool matters(const ParamInfo& /*param*/) const { return true; }
  /// How well the model does on data that it does not train on.
  virtual std::optional<Validation> validation(DataParallel<T>& /*replicas*/) { return {}; }
  /// Sets the weights to a file's, before there are replicas; writes them into a file. Throws
  /// Error(invalid_argument), the same on every rank.
  virtual void load(const std::string& /*file*/) {}
  virtual void save(DataParallel<T>& /*replicas*/, const std::string& /*file*/) {}
  /// Text that the model writes.
  virtual std::string writes(DataParallel<T>& /*replicas*/) { return ""; }
  /// The first thing of the last step that is no finite number. Weights are whole.
  virtual std::string not_finite(Communicator& /*world*/, const StepOptions& /*how*/) {
    return "the loss";
  }
};

/// The task that was asked for. `world` has the mesh's ranks, and may be null if this rank is
/// alone; options and mesh must outlive the task. Throws Error(invalid_argument), the same on every
/// rank, where data cannot be read.
template <class T>
std::unique_ptr<Task<T>> make_task(Communicator* world, const TrainOptions& options,
                                   const Mesh& mesh);

}  // namespace baton::transformer::program
