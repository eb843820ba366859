#pragma once
/// Embedding and cross-entropy of a vocabulary that is cut over the ranks of axis tp. Shoeybi et
/// al., Megatron-LM (2019).

#include "baton/export.hpp"
#include "exchange.hpp"
#include "param.hpp"
#include "random.hpp"

namespace BATON_API baton {
namespace transformer {

/// y [.., d] = rows ids [..] of a table [vocabulary, d], of which every rank of axis tp has a part.
template <class T>
class VocabParallelEmbedding {
 public:
  /// The table is drawn normally with this deviation, the same whatever the mesh. With
  /// `sequence_parallel` (Korthikanti et al., 2022) y is this rank's part of the positions. Throws
  /// Error(invalid_argument) unless the vocabulary is a multiple of the ranks of axis tp.
  VocabParallelEmbedding(std::int64_t vocabulary, std::int64_t d, const Mesh& mesh,
                         const Random& random, bool sequence_parallel = false,
                         double deviation = 0.02, std::string name = "embedding");
  /// ids [b, s], on the host, the same on all ranks of axis tp. Throws Error(invalid_argument) that
  /// names the first id outside of the vocabulary.
  Array<T> forward(View<const std::int32_t> ids);
  /// Adds to the gradient of the table.
  void backward(View<const std::int32_t> ids, const Array<T>& dy);

  Param<T> table;  ///< [vocabulary / tp, d]

 private:
  std::int64_t vocabulary_, first_;
  Exchange leave_;
};

/// Sum over this rank's n positions of -log softmax(logits)[target], / elements. logits_shard [n,
/// vocabulary / P] are columns of the logits, those of rank r of `group` the
/// r-th; targets [n] count through all. The same on all ranks; dlogits_shard, unless it is empty,
/// gets the gradient. Two all-reduces, of n and of 2 n elements. Throws Error(invalid_argument)
/// that names the first target outside of the vocabulary. targets lie on the host.
template <class T>
double vocab_parallel_cross_entropy(View<const T> logits_shard, View<const std::int32_t> targets,
                                    double elements, Group group,
                                    View<std::type_identity_t<T>> dlogits_shard);

}  // namespace transformer
}  // namespace baton
