#pragma once
/// GPT-2, a language model: Radford, Wu, Child, Luan, Amodei, Sutskever, Language models are
/// unsupervised multitask learners (2019).

#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "../block.hpp"
#include "../data/text.hpp"
#include "../recompute.hpp"
#include "../training/batch.hpp"
#include "../vocab.hpp"
#include "baton/export.hpp"

namespace BATON_API baton {
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
template <class T>
class Gpt2 : public Model<T> {
 public:
  /// The mesh must outlive it. Throws Error(invalid_argument) on all ranks if a dimension cannot be
  /// cut equally; nothing is sent.
  Gpt2(const Gpt2Config& config, const Random& random, const Mesh& mesh,
       bool sequence_parallel = false);

  /// This rank's share of the mean over `elements` tokens of -log of the probability of the
  /// targets: shares add up over the axes dp and sp, and are the same along tp. The batch has this
  /// rank's samples and, along axis sp, positions. Throws Error(invalid_argument) before anything
  /// is sent if there are too many positions, or an id is not within the vocabulary.
  double forward(const TokenBatch& batch, double elements, Context& context);
  /// Adds the gradients of the last forward() with this context that has had no backward().
  void backward(Context& context);
  /// The logits of ids [b, s], [b, s, vocabulary], whole on every rank. Without dropout; keeps
  /// nothing in the context. The ids are the same on the ranks of a sample, and not cut along axis
  /// sp. Collective. Throws like forward().
  Array<T> logits(View<const std::int32_t> ids, Context context = {});

  Params<T> params() override;
  /// The first unit has the embeddings and the final norm, which the head needs as well; each block
  /// is another.
  std::vector<Unit<T>> units() override;
  /// Sizes and settings.
  const Gpt2Config& config() const { return config_; }
  /// The mesh that it was made for.
  const Mesh& mesh() const { return mesh_; }

 private:
  struct BATON_HIDDEN Saved;
  /// The normed result of the last block, of this rank's positions along sp.
  Array<T> body(View<const std::int32_t> ids, Saved& saved, Context& context);
  Dropout dropout(const Shape& x, const Context& context) const;
  Module<T>& layer(std::size_t l);
  /// The rows of the position embedding that this rank adds to `x`.
  Range positions(const Shape& x) const;

  Gpt2Config config_;
  const Mesh& mesh_;
  bool sequence_parallel_;
  VocabParallelEmbedding<T> embedding_;
  Param<T> positions_;  ///< [context, d_model]
  std::vector<std::unique_ptr<TransformerBlock<T>>> blocks_;
  std::deque<Recomputed<T>> recomputed_;  ///< each is a block
  Param<T> norm_weight_, norm_bias_;
  Exchange enter_head_;
};

}  // namespace transformer
}  // namespace baton
