#pragma once
/// Runs a pipeline schedule on the ranks of axis pp, with send and recv.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../training/data_parallel.hpp"
#include "../training/step.hpp"
#include "baton/export.hpp"
#include "schedule.hpp"
#include "stage.hpp"
#include "steps.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// The stages that lie on this rank, as one model, and their run by a schedule.
///
/// A message leaves as soon as its result is computed, while the rank computes on. The first
/// message of each sender and kind, and the next one as soon as one has come, are received ahead,
/// so that they arrive during computations: activations take one message of each sender and kind
/// more than the schedule's peak. What an action's forward keeps is freed when its backward ends.
template <class T>
class Pipeline final : public Model<T> {
 public:
  /// The stages of this rank by their numbers in the schedule; all must outlive it, and so must the
  /// mesh. Collective over axis pp. Throws Error(invalid_argument) on all ranks if the schedule is
  /// wrong (verify()), is for another number of ranks, or ranks have different ones; on this rank
  /// if the stages are not those that lie on it.
  Pipeline(PipelineSchedule schedule, const std::map<int, PipelineStage<T>*>& stages,
           const Mesh& mesh);
  ~Pipeline() override;
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Those of all stages, the last stage first.
  Params<T> params() override;
  /// Those of all stages, the first stage first.
  std::vector<Unit<T>> units() override;

  /// Called on the rank of the last stage with its results.
  using Output = std::function<void(int micro_batch, const Array<T>& output)>;
  /// Computes all micro-batches forward and backward, which the stages have
  /// (PipelineStage::start()), and adds their gradients; returns this rank's part of the loss.
  /// Collective over the mesh. If a stage throws, all ranks of the mesh throw one sentence with its
  /// rank in the mesh, stage and micro-batch, when the messages and collectives of the others have
  /// ended; the next run() works. It covers the collectives that start in Group::start(). Throws
  /// Error(invalid_argument) on all ranks before an activation is sent if stages give other shapes
  /// than the next ones take; on this rank at once what a communicator throws.
  double run(DataParallel<T>& replicas, const Random& random, const Output& output = {});
  /// Adds the gradients of parameters that the first and the last stage have
  /// (PipelineStage::shared()), so that both have the sum. `params` are those that an optimizer
  /// steps, with complete gradients (DataParallel::params()). Collective over axis pp.
  void add_shared_gradients(const Params<T>& params);
  /// Computes so many micro-batches, which the stages have, forward only, without dropout, and
  /// keeps nothing. Returns this rank's part of the loss. Collective and throws like run().
  double forward(DataParallel<T>& replicas, int micro_batches, const Output& output = {});
  /// Seconds of run(), and those of them that this rank has computed.
  struct Seconds {
    double all = 0, computing = 0;
  };
  /// Those so far.
  Seconds seconds() const;

  /// The schedule.
  const PipelineSchedule& schedule() const;
  /// The rank along axis pp of a stage.
  int rank_of(int stage) const;
  /// Called before and after each action of run(), `ends` says which.
  void observe(std::function<void(const PipelineAction& action, bool ends)> observer);

 private:
  struct BATON_HIDDEN State;
  std::unique_ptr<State> state_;
};

/// Makes one step of a pipeline, as the whole batch on one rank would make it. Stages have their
/// micro-batches, as many as the schedule (options.micro_batches is not used). Ranks that differ
/// along `others` have other samples or positions. Collective over the mesh. Throws as
/// Pipeline::run(); weights are then as they were.
template <class T>
StepLoss train_step(Pipeline<T>& pipeline, DataParallel<T>& replicas, Optimizer<T>& optimizer,
                    const Mesh& mesh, Axes others, const StepOptions& options = {},
                    const typename Pipeline<T>::Output& output = {}) {
  const StepWork work{[&] { return pipeline.run(replicas, options.random, output); },
                      [&] { pipeline.add_shared_gradients(replicas.params()); }};
  return train_step(replicas, optimizer, mesh, others | Axis::pp, work, options);
}

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
