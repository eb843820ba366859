#pragma once
/// Embedding and cross-entropy of a vocabulary that is cut over the ranks of axis tp. Shoeybi et
/// al., Megatron-LM (2019).

#include "exchange.hpp"
#include "param.hpp"
#include "random.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// y [.., d] = rows ids [..] of a table [vocabulary, d]. Every rank of axis tp has a part of the
/// table.
template <class T>
class VocabParallelEmbedding {
 public:
  /// Draws the table normally with this standard deviation, the same on every mesh. With
  /// `sequence_parallel` (Korthikanti et al., 2022) y is this rank's part of the positions. Throws
  /// Error(invalid_argument) unless the vocabulary is a multiple of the ranks of axis tp.
  VocabParallelEmbedding(std::int64_t vocabulary, std::int64_t d, const Mesh& mesh,
                         const Random& random, bool sequence_parallel = false,
                         double deviation = 0.02, std::string name = "embedding");
  /// ids [b, s], on the host, the same on all ranks of axis tp. Throws Error(invalid_argument) that
  /// names the first id outside of the vocabulary.
  Array<T> forward(View<const std::int32_t> ids);
  /// Adds dy to the rows `ids` of the table's gradient.
  void backward(View<const std::int32_t> ids, const Array<T>& dy);

  Param<T> table;  ///< [vocabulary / tp, d]

 private:
  std::int64_t vocabulary_, first_;
  Exchange leave_;
};

/// Sum over n positions of -log softmax(logits)[target] / elements; the same on all ranks.
/// logits_shard [n, vocabulary / P] are the columns of this rank of `group`, in the order of ranks.
/// targets [n] lie on the host and count through the whole vocabulary. dlogits_shard gets the
/// gradient unless it is empty. Two all-reduces, of n and of 2 n elements. Throws
/// Error(invalid_argument) that names the first target outside of the vocabulary.
template <class T>
double vocab_parallel_cross_entropy(View<const T> logits_shard, View<const std::int32_t> targets,
                                    double elements, Group group,
                                    View<std::type_identity_t<T>> dlogits_shard);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
