#pragma once
/// The transformer block, on one rank and in its parallel forms.

#include <string>

#include "exchange.hpp"
#include "module.hpp"
#include "ops/ops.hpp"

namespace baton::transformer {

struct BlockConfig {
  std::int64_t d_model = 0, heads = 0, d_ff = 0;
  std::int64_t kv_heads = 0;  ///< grouped-query attention; 0: as many as heads
  bool causal = false;
  Activation activation = Activation::relu;
  bool attention_bias = false;  ///< of q, k, v and o
  double epsilon = 1e-5;        ///< of the norms
  double attention_dropout = 0, hidden_dropout = 0;
  std::string name = "block";  ///< before the names of parameters; blocks of a model differ in it

  std::int64_t head_size() const { return d_model / heads; }
  std::int64_t key_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  /// Throws Error(invalid_argument): which dimension, its size, what it should be a multiple of.
  void check() const;
};

/// Pre-norm transformer block: h = x + Attention(norm1(x)), y = h + FeedForward(norm2(h)), with x
/// and y [batch, seq, d_model]. Weights are [out, in], as in torch.nn.Linear; q_proj, o_proj
/// [d_model, d_model], k_proj and v_proj [kv_heads · head size, d_model], fc1 [d_ff, d_model], fc2
/// [d_model, d_ff]. Vaswani et al., Attention is all you need (2017); Xiong et al., On layer
/// normalization (2020).
///
/// Every form gives, on every rank, the same as the whole block gives on one, or its slice. Each
/// backward belongs to its forward, with the same context; gradients are the sums that `partial` of
/// the parameters says, which sync_grads() completes.
template <class T>
class TransformerBlock : public Module<T> {
 public:
  /// Weights as `random` draws them: uniform within 1/sqrt(in), like torch.nn.Linear; norms 1 and
  /// 0.
  TransformerBlock(const BlockConfig& config, const Random& random);

  /// The whole block on this rank.
  Array<T> forward(const Array<T>& x, Context& context) override;
  Array<T> backward(const Array<T>& dy, Context& context) override;

  /// Cuts the weights for tensor parallelism along axis tp of the mesh: q_proj, k_proj, v_proj, fc1
  /// and fc1_bias by outputs, o_proj and fc2 by inputs. With `sequence_parallel`, what lies between
  /// the parallel regions is cut along the sequence, over the same ranks. Along axis sp, positions
  /// are cut, and exchanged for heads around attention. The mesh must outlive the block. Throws
  /// Error(invalid_argument), before anything is sent, where heads, kv_heads or d_ff do not divide.
  void parallelize(const Mesh& mesh, bool sequence_parallel = false);
  /// parallelize() for tensor parallelism alone, over all ranks of the mesh's axis tp.
  void init_tensor_parallel_shards(const Mesh& mesh) { parallelize(mesh, false); }

  /// x and y whole on every rank of axis tp; two all-reduces. Shoeybi et al., Megatron-LM (2019).
  Array<T> forward_tensor_parallel(const Array<T>& x, Context& context);
  Array<T> backward_tensor_parallel(const Array<T>& dy, Context& context);
  /// x_shard and y [batch, seq / P, d_model] along axis sp; four all-to-alls. Jacobs et al.,
  /// DeepSpeed-Ulysses (2023).
  Array<T> forward_ulysses(const Array<T>& x_shard, Context& context);
  Array<T> backward_ulysses(const Array<T>& dy_shard, Context& context);

  const BlockConfig& config() const { return config_; }
  Params<T> params() override;

 private:
  BlockConfig config_;
};

}  // namespace baton::transformer
