#pragma once
/// Models of which ranks along axis dp, and any other along which gradients are partial, have the
/// same parameters: replicated, or divided among these ranks.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "../module.hpp"
#include "batch.hpp"
#include "baton/export.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// How the ranks of a mesh keep one model. A step is: start_step(); for each micro-batch attach(),
/// forward and backward with that context; finish_gradients(); the optimizer's step on params();
/// finish_step(). train_step() does all that (step.hpp).
template <class T>
class DataParallel {
 public:
  virtual ~DataParallel() = default;
  /// The parameters that an optimizer steps on this rank.
  virtual Params<T> params() = 0;
  /// Sets all gradients to zero.
  virtual void start_step() = 0;
  /// Prepares the context of a micro-batch, or of an evaluation. `last`: it is the step's last
  /// micro-batch, so gradients may be sent as soon as its backward completes them.
  virtual void attach(Context& context, bool last) = 0;
  /// The same for a pipeline, whose micro-batches take turns: contexts that were attached before
  /// stay in use. `last`: its backward completes the gradients of its stage. `context` reports the
  /// uses of all units.
  virtual void attach_beside(Context& context, bool last) { attach(context, last); }
  /// Whether gradients of weights may be computed after the rest of a backward, when others have
  /// begun (Context::postpones).
  virtual bool may_postpone() const { return true; }
  /// Returns when the gradients of params() are the sums over all ranks.
  virtual void finish_gradients() = 0;
  /// In place of finish_gradients() and the rest of a step that fails: returns when all that this
  /// rank has started has ended, and is as before start_step(). Every rank calls it, and has
  /// started the same; values of parameters stay.
  virtual void forget_step() = 0;
  /// Makes the model's parameters those that the optimizer has stepped. Collective.
  virtual void finish_step() = 0;
  /// Calls `use` while every parameter of the model has its present values: for evaluation without
  /// attach(), for files. Collective.
  virtual void with_values(const std::function<void()>& use) = 0;
};

/// Settings of DistributedDataParallel.
struct ReplicationOptions {
  std::int64_t bucket_bytes = 4 << 20;  ///< most bytes of gradients that are sent together
  /// Whether sums of gradients start while backward goes on.
  bool overlap = true;
};

/// Every rank has all parameters; gradients are summed in buckets, each as soon as it is complete,
/// while backward goes on. Li et al., PyTorch distributed: experiences on accelerating data
/// parallel training (2020).
template <class T>
class DistributedDataParallel final : public DataParallel<T> {
 public:
  /// Model and mesh must outlive it.
  DistributedDataParallel(Model<T>& model, const Mesh& mesh,
                          const ReplicationOptions& options = {});

  /// Gives every rank the parameters of the first (transformer::broadcast_params()).
  void broadcast_params() { transformer::broadcast_params(params_, mesh_); }
  /// In place of finish_gradients(), for losses that are means over each rank's own samples: makes
  /// gradients complete, means along axis dp and sums over the other axes along which they are
  /// partial. Collective.
  void average_gradients() {
    buckets_.finish();
    average_sums(params_, mesh_);
  }

  Params<T> params() override { return params_; }
  void start_step() override { model_.zero_grads(); }
  void attach(Context& context, bool last) override;
  void finish_gradients() override { buckets_.finish(); }
  void forget_step() override { buckets_.forget(); }
  void finish_step() override {}
  void with_values(const std::function<void()>& use) override { use(); }
  /// The messages and bytes that this rank sends in each step.
  Traffic traffic() const { return buckets_.traffic(); }

 private:
  Model<T>& model_;
  const Mesh& mesh_;
  ReplicationOptions options_;
  Params<T> params_;
  GradientBuckets<T> buckets_;
};

/// The part of a model's state that FullyShardedDataParallel divides: the optimizer's state (1),
/// the gradients as well (2), the parameters as well (3).
enum class ShardingStage : std::uint8_t { optimizer = 1, gradients = 2, parameters = 3 };

/// The elements of n that rank `rank` of P has: [r n / P, (r + 1) n / P), rounded down. The last
/// rank has the most, ceil(n / P).
Range shard_of(std::int64_t n, int ranks, int rank);

/// Parameters of each unit, end to end, are divided among the ranks along the axes over which their
/// gradients are partial (shard_of()). The optimizer steps these only. Rajbhandari et al., ZeRO
/// (2020); Zhao et al., PyTorch FSDP (2023).
///
/// Stage 1: gradients are reduced to their rank as soon as the last micro-batch's backward
/// completes a unit's; stepped parameters are gathered afterwards. Stage 2: gradients exist while a
/// unit's backward needs them only, so they are reduced for every micro-batch. Stage 3: parameters
/// exist while a unit is used only. The next unit's are on their way meanwhile, in the order of the
/// micro-batch before.
///
/// A rank sends in a step of one micro-batch, for n bytes in units of at most u bytes, with
/// algorithms that send no byte twice, 2 n (P - 1) / P at stages 1 and 2, and 3 n (P - 1) / P at
/// stage 3, where it holds n / P bytes of parameters and 2 u more. Every rank makes equally many
/// micro-batches in a step.
template <class T>
class FullyShardedDataParallel final : public DataParallel<T> {
 public:
  /// Model and mesh must outlive it; the model's parameters belong to it from here on. Parameters
  /// lie where the thread's arrays do, and are equal on the ranks that divide them. Collective.
  FullyShardedDataParallel(Model<T>& model, const Mesh& mesh,
                           ShardingStage stage = ShardingStage::parameters);
  ~FullyShardedDataParallel() override;
  FullyShardedDataParallel(const FullyShardedDataParallel&) = delete;
  FullyShardedDataParallel& operator=(const FullyShardedDataParallel&) = delete;

  /// This rank's elements of each parameter that it has some of, in one row, under the parameter's
  /// name.
  Params<T> params() override;
  void start_step() override;
  void attach(Context& context, bool last) override;
  void attach_beside(Context& context, bool last) override;
  /// At stage 1 only: at others, gradients exist during a backward only.
  bool may_postpone() const override;
  void finish_gradients() override;
  void forget_step() override;
  void finish_step() override;
  void with_values(const std::function<void()>& use) override;
  /// The messages and bytes that this rank has sent since start_step().
  Traffic traffic() const;

 private:
  struct BATON_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
