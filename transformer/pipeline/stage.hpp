#pragma once
/// A stage of a pipeline: some layers of a model, from one cut to the next.

#include <utility>

#include "../module.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// The result of a part of a model.
template <class T>
struct StageOutput {
  Array<T> activation;  ///< for the next part; of the last part, the model's output
  double loss = 0;      ///< of the last part: this rank's share of the loss
};

/// Layers of a model whose neighbours may be elsewhere. It has its micro-batches already, on every
/// stage; between stages go activations and gradients only.
///
/// Each micro-batch has a context of its own on each stage. Backward follows forward with this
/// context, in one piece or in two; backward_weight() may come much later. Arrays that a call gets
/// belong to the stage: nobody else changes their elements.
template <class T>
class PipelineStage : public Model<T> {
 public:
  /// The shape of the activation that forward() takes, on this rank. On the first stage, without
  /// dimensions: it takes none.
  virtual Shape input(int micro_batch) const = 0;
  /// That of the activation that it returns; without dimensions on the last stage.
  virtual Shape output(int micro_batch) const = 0;
  /// The result for the activation `x` of the stage before; the first stage begins with the
  /// micro-batch, and gets an empty array. Sets context.first_sample.
  virtual StageOutput<T> forward(int micro_batch, Array<T> x, Context& context) = 0;
  /// The gradient by x, from that by the activation; adds to the gradients of the weights. The last
  /// stage gets an empty array, the first returns one.
  virtual Array<T> backward(Array<T> dy, Context& context) = 0;
  /// backward() without what backward_weight() does. Gradients of norms, of biases outside linear
  /// layers and of embeddings, which are cheap, are part of it.
  Array<T> backward_input(Array<T> dy, Context& context) {
    context.postpones = true;
    return backward(std::move(dy), context);
  }
  /// Adds those gradients of the weights that backward_input() with this context has left out. What
  /// it needs is kept until then, and nothing else.
  void backward_weight(Context& context) { context.compute_postponed(); }
  /// Parameters of this stage that the first and the last stage both have, under equal names and
  /// with equal values. Their gradients must be added over these two stages, and count once in the
  /// norm of all gradients. Empty on other stages, and where first and last are the same.
  virtual Params<T> shared() { return {}; }
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
