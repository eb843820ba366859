#pragma once
/// The transformer block, whole on one rank and in its parallel forms.

#include <memory>
#include <string>

#include "baton/export.hpp"
#include "exchange.hpp"
#include "module.hpp"
#include "ops/ops.hpp"

namespace BATON_API baton {
namespace transformer {

struct BlockConfig {
  std::int64_t d_model = 0, heads = 0, d_ff = 0;
  std::int64_t kv_heads = 0;  ///< grouped-query attention; 0: as many as heads
  bool causal = false;
  Activation activation = Activation::relu;
  double epsilon = 1e-5;  ///< of the norms
  double attention_dropout = 0, hidden_dropout = 0;
  /// Before the names of parameters. Blocks of a model differ in it, and so in what they draw.
  std::string name = "block";

  std::int64_t head_size() const { return d_model / heads; }
  std::int64_t key_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  /// Throws Error(invalid_argument): which dimension, its size, what it should be a multiple of.
  void check() const;
};

/// What a rank sends at one place of a model.
struct BudgetLine {
  std::string layer;
  bool backward = false;
  Operator op = Operator::identity;
  Shape shape;    ///< of what each rank gives, in elements
  int times = 1;  ///< such calls
  Choice choice;  ///< the algorithm that they run
  Traffic sent;   ///< by this rank, in all of them
};

/// Pre-norm transformer block: h = x + Attention(norm1(x)), y = h + FeedForward(norm2(h)), with x
/// and y [batch, seq, d_model]. Vaswani et al., Attention is all you need (2017); Xiong et al., On
/// layer normalization in the transformer architecture (2020).
///
/// Weights are [out, in], as in torch.nn.Linear. Every form gives the same as forward() on one rank
/// gives, or its slice, until an optimizer changes the shards or the whole weights. Each backward
/// belongs to its forward, with the same context. Gradients by whole weights on a rank are those of
/// what the rank was given; `partial` says over which axes they have to be added, and sync_grads()
/// does.
///
/// T is float, double or bf16. It is made where the thread's arrays lie; parameters that
/// parallelize() has cut may be moved to an accelerator (move_to()).
///
/// Errors: Error(invalid_argument), before anything is sent, where a shape or a dimension does not
/// fit, or parallelize() has not been called.
template <class T>
class TransformerBlock : public Module<T> {
 public:
  TransformerBlock(const TransformerBlock&) = delete;
  TransformerBlock& operator=(const TransformerBlock&) = delete;
  /// Weights are drawn uniformly within 1 / sqrt(in), as torch.nn.Linear does; norms are 1 and 0.
  TransformerBlock(const BlockConfig& config, const Random& random);

  /// The whole block on this rank.
  Array<T> forward(const Array<T>& x, Context& context) override;
  Array<T> backward(const Array<T>& dy, Context& context) override;

  /// Prepares the parallel forms over a mesh, which must outlive the block. Along axis tp, weights
  /// are cut into the shards below; with `sequence_parallel`, what lies between the tensor-parallel
  /// regions is cut along the sequence over the same ranks (Korthikanti et al., Reducing activation
  /// recomputation in large transformer models, 2022). Along axis sp, positions are cut, and
  /// exchanged for heads around attention. Throws where heads, kv_heads or d_ff do not divide; k
  /// and v heads are repeated where axis sp has a multiple of their number. Nothing is sent.
  void parallelize(const Mesh& mesh, bool sequence_parallel = false);
  /// The same for tensor parallelism alone.
  void init_tensor_parallel_shards(const Mesh& mesh) { parallelize(mesh); }

  /// x and y whole on every rank of axis tp. Two all-reduces each way. Shoeybi et al., Megatron-LM
  /// (2019). Throws where parallelize() cut anything else: then gradients would be summed wrongly.
  Array<T> forward_tensor_parallel(const Array<T>& x, Context& context);
  Array<T> backward_tensor_parallel(const Array<T>& dy, Context& context);
  /// x_shard and y [batch, seq / P, d_model] along axis sp. Throws likewise. Four all-to-alls each
  /// way. Jacobs et al., DeepSpeed-Ulysses (2023).
  Array<T> forward_ulysses(const Array<T>& x_shard, Context& context);
  Array<T> backward_ulysses(const Array<T>& dy_shard, Context& context);
  /// What parallelize() said: x and y [batch, seq / (sp · tp if sequence_parallel), d_model], cut
  /// along sp first.
  Array<T> forward_parallel(const Array<T>& x_shard, Context& context);
  Array<T> backward_parallel(const Array<T>& dy_shard, Context& context);
  /// All that this rank sends in forward_parallel() and backward_parallel() for an x of this shape,
  /// in order. Nothing is sent; to be called by all ranks, as forward would be.
  std::vector<BudgetLine> budget(const Shape& x_shard);
  /// This block as a module whose forward is forward_parallel().
  Module<T>& parallel() { return parallel_; }

  /// A form of the block, as data: what it computes with, and what it sends where.
  struct Form {
    Param<T>*q, *k, *v, *o, *fc1, *fc1_bias, *fc2;
    /// Around what is tensor parallel: before the first linear layers, and after the last.
    struct {
      Exchange enter, leave;
    } attention, feed_forward;
    Exchange to_heads, to_positions;  ///< of q, k and v before attention, and of what it gives
    int repeats = 1;                  ///< of each k and v head, before it is sent
    std::int64_t heads = 0, key_heads = 0;  ///< this rank's, of the linear layers
    std::int64_t first_head = 0;            ///< this rank's first in attention, of all
    int parts = 1, part = 0;                ///< of the sequence, which x is one of
  };
  /// Of the axes given. `sequence_parallel` as for parallelize(), and false without axis tp.
  Form form(Axes axes, bool sequence_parallel);
  /// What parallelize() said.
  Form parallel_form();
  Array<T> forward(const Array<T>& x, Context& context, const Form& form);
  Array<T> backward(const Array<T>& dy, Context& context, const Form& form);
  Params<T> params(const Form& form);

  const BlockConfig& config() const { return config_; }
  /// Of what forward() uses; of parallel(), what forward_parallel() uses.
  Params<T> params() override { return params(form({}, false)); }

  Param<T> norm1_weight, norm1_bias, norm2_weight, norm2_bias;  ///< [d_model]
  Param<T> q_proj, o_proj;                                      ///< [d_model, d_model]
  Param<T> k_proj, v_proj;  ///< [kv_heads · head size, d_model]
  Param<T> fc1, fc1_bias;   ///< [d_ff, d_model], [d_ff]
  Param<T> fc2, fc2_bias;   ///< [d_model, d_ff], [d_model]
  /// Parts of the above along axis tp: by outputs, but o_proj and fc2 by inputs.
  Param<T> q_proj_shard, k_proj_shard, v_proj_shard, o_proj_shard;
  Param<T> fc1_shard, fc1_bias_shard, fc2_shard;

 private:
  struct BATON_HIDDEN Saved;
  struct Parallel final : Module<T> {
    explicit Parallel(TransformerBlock& block) : block(block) {}
    Array<T> forward(const Array<T>& x, Context& context) override {
      return block.forward_parallel(x, context);
    }
    Array<T> backward(const Array<T>& dy, Context& context) override {
      return block.backward_parallel(dy, context);
    }
    Params<T> params() override { return block.params(block.parallel_form()); }
    TransformerBlock& block;
  };

  Array<T> attend(const Array<T>& normed, Saved& saved, Context& context, const Form& form);
  Array<T> attend_backward(Array<T> dy, const Saved& saved, Context& context, const Form& form);
  Array<T> feed_forward(const Array<T>& normed, Saved& saved, const Form& form);
  Array<T> feed_forward_backward(Array<T> dy, const Saved& saved, Context& context,
                                 const Form& form);
  void require_parallel(std::string_view call) const;
  Form only(Axis axis, std::string_view call);
  Dropout hidden_dropout(std::string_view which, const Shape& x, const Context& context,
                         const Form& form) const;
  AttentionOptions attention_options(const Shape& q, const Context& context,
                                     const Form& form) const;

  BlockConfig config_;
  const Mesh* mesh_ = nullptr;
  bool sequence_parallel_ = false;
  Parallel parallel_{*this};
};

}  // namespace transformer
}  // namespace baton
