#pragma once
/// GPT-2, a language model: Radford, Wu, Child, Luan, Amodei, Sutskever, Language models are
/// unsupervised multitask learners (2019).

#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "../block.hpp"
#include "../data/text.hpp"
#include "../pipeline/stage.hpp"
#include "../recompute.hpp"
#include "../training/batch.hpp"
#include "../vocab.hpp"
#include "baton/export.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Sizes and settings of a GPT-2.
struct Gpt2Config {
  std::int64_t vocabulary = 50257;
  std::int64_t context = 1024;  ///< most positions of a sample
  std::int64_t layers = 12, heads = 12, d_model = 768;
  double dropout = 0.1;  ///< of embeddings, probabilities of attention, and results of layers
  Activation activation = Activation::gelu_tanh;
  double epsilon = 1e-5;  ///< of the layer norms
  /// Whether backward computes what a block's forward keeps once more, so that only the blocks'
  /// inputs are kept.
  bool recompute = false;

  /// Elements of all parameters; the head's are the embedding's.
  std::int64_t parameters() const;
  /// Settings of block number `layer`.
  BlockConfig block(std::int64_t layer) const;
};
/// A preset by name: tiny (2 layers of 64), mini (4 of 256) or small (12 of 768, as published: 124
/// million parameters). Throws Error(invalid_argument) that names all if there is none.
Gpt2Config gpt2_preset(std::string_view name);

/// Token and position embeddings, pre-norm blocks, a final norm, and a head whose weight is that of
/// the token embedding. Over a mesh, axis dp has other samples, axis tp parts of weights and
/// vocabulary, axis sp parts of the positions, as the block and the vocabulary have them
/// (block.hpp, vocab.hpp); with `sequence_parallel`, ranks of axis tp have parts of the positions
/// between the blocks' regions, too.
///
/// Weights are drawn normally with deviation 0.02, those of o_proj and fc2 with 0.02 /
/// sqrt(2 layers); biases are 0, norms 1 and 0. They depend on the seed only, not on the mesh.
///
/// A part of the model has some of its blocks, with the same weights. The embeddings are with the
/// first block, the final norm and the head with the last; so two parts have the token embedding.
template <class T>
class Gpt2 : public Model<T> {
 public:
  /// The mesh must outlive it. `blocks`: the part with these; otherwise the whole. Throws
  /// Error(invalid_argument) on all ranks if a dimension cannot be cut equally, or the model has no
  /// such blocks; nothing is sent.
  Gpt2(const Gpt2Config& config, const Random& random, const Mesh& mesh,
       bool sequence_parallel = false, std::optional<Range> blocks = {});

  /// This rank's share of the mean over `elements` tokens of -log of the probability of the
  /// targets: shares add up over the axes dp and sp, and are the same along tp. The batch has this
  /// rank's samples and, along axis sp, positions. Throws Error(invalid_argument) before anything
  /// is sent if there are too many positions, or an id is not within the vocabulary.
  double forward(const TokenBatch& batch, double elements, Context& context);
  /// Adds the gradients of the last forward() with this context that has had no backward().
  void backward(Context& context);
  /// forward() of a part. `x` is the activation of the part before, which the first does not need;
  /// the last returns this rank's columns of the logits [b · s, vocabulary / tp] beside the loss.
  /// `x` must not change before backward.
  StageOutput<T> forward(const TokenBatch& batch, double elements, Array<T> x, Context& context);
  /// backward() of a part: the gradient by x, from that by the activation.
  Array<T> backward(Array<T> dy, Context& context);
  /// The shape, on this rank, of the activations between parts for ids of this shape.
  Shape activation(const Shape& ids) const;
  /// The logits of ids [b, s], [b, s, vocabulary], whole on every rank. Without dropout; keeps
  /// nothing in the context. The ids are the same on the ranks of a sample, and not cut along axis
  /// sp. Collective. Throws like forward().
  Array<T> logits(View<const std::int32_t> ids, Context context = {});
  /// For logits of ids [b, s]: this rank's positions of them, with a few more if they cannot be cut
  /// equally. The targets are no others.
  TokenBatch own_positions(View<const std::int32_t> ids) const;
  /// The logits [b, positions, vocabulary] that ranks along tp and sp have in parts [b, own
  /// positions, own vocabulary]. Collective along these axes.
  Array<T> joined_logits(Array<T> part, std::int64_t positions) const;

  Params<T> params() override;
  /// The first unit has the embeddings and the final norm, which the head needs as well; each block
  /// is another. In a part with the last block but not the first, the last unit is the head.
  std::vector<Unit<T>> units() override;
  /// Sizes and settings.
  const Gpt2Config& config() const { return config_; }
  /// The mesh that it was made for.
  const Mesh& mesh() const { return mesh_; }
  /// Whether it has the first block, and so the embeddings.
  bool first() const { return begin_ == 0; }
  /// Whether it has the last block, and so the head.
  bool last() const { return begin_ + static_cast<std::int64_t>(blocks_.size()) == config_.layers; }
  /// The token embedding, the weight of the head as well; null in a part that has neither.
  Param<T>* table() { return embedding_ ? &embedding_->table : nullptr; }

 private:
  struct BATON_HIDDEN Saved;
  Array<T> embed(const TokenBatch& batch, Context& context);
  Array<T> through_blocks(Array<T> x, Context& context);
  /// The normed result of the last block, of this rank's positions along sp. The caller, who has
  /// the head, leaves its unit.
  Array<T> normed(Array<T> x, Saved& saved, Context& context);
  Array<T> head_backward(Saved saved, Context& context);
  void embed_backward(View<const std::int32_t> ids, Array<T> dx, Context& context);
  void add_block(std::int64_t number, const Random& random);
  void expect_whole(std::string_view call) const;
  std::size_t head_unit() const { return first() ? 0 : blocks_.size(); }
  std::size_t block_unit(std::size_t l) const { return first() ? l + 1 : l; }
  Dropout dropout(const Shape& x, const Context& context) const;
  Module<T>& layer(std::size_t l);
  /// The rows of the position embedding that this rank adds to `x`.
  Range positions(const Shape& x) const;

  Gpt2Config config_;
  const Mesh& mesh_;
  bool sequence_parallel_;
  std::int64_t begin_ = 0;                              ///< number of the first block
  std::optional<VocabParallelEmbedding<T>> embedding_;  ///< of first and last parts
  Param<T> positions_;                                  ///< [context, d_model], of first parts
  std::vector<std::unique_ptr<TransformerBlock<T>>> blocks_;
  std::deque<Recomputed<T>> recomputed_;  ///< each is a block
  Param<T> norm_weight_, norm_bias_;      ///< of last parts
  Exchange enter_head_;
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
