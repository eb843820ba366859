#pragma once
/// The transformer block, whole on one rank and in its parallel forms.

#include <memory>
#include <string>

#include "baton/export.hpp"
#include "exchange.hpp"
#include "module.hpp"
#include "ops/ops.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Sizes and settings of a block.
struct BlockConfig {
  std::int64_t d_model = 0, heads = 0, d_ff = 0;
  std::int64_t kv_heads = 0;  ///< grouped-query attention; 0: as many as heads
  bool causal = false;
  bool attention_bias = false;  ///< biases of q_proj, k_proj, v_proj and o_proj, as GPT-2 has
  Activation activation = Activation::relu;
  double epsilon = 1e-5;  ///< of the layer norms
  double attention_dropout = 0, hidden_dropout = 0;
  /// Begins the names of parameters. Each block of a model has another name, so it draws other
  /// weights.
  std::string name = "block";

  /// Elements of a head.
  std::int64_t head_size() const { return d_model / heads; }
  /// The number of heads of k and v.
  std::int64_t key_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  /// Throws Error(invalid_argument) if a dimension is wrong; the error names the dimension, its
  /// size and the expected divisor.
  void check() const;
};

/// The messages that a rank sends at one place of a model.
struct BudgetLine {
  std::string layer;
  bool backward = false;
  Operator op = Operator::identity;
  Shape shape;    ///< of each rank's input, in elements
  int times = 1;  ///< number of such calls
  Choice choice;  ///< their algorithm
  Traffic sent;   ///< by this rank, in all of them
};

/// Pre-norm transformer block: h = x + Attention(norm1(x)), y = h + FeedForward(norm2(h)), with x
/// and y [batch, seq, d_model]. Vaswani et al., Attention is all you need (2017); Xiong et al., On
/// layer normalization in the transformer architecture (2020).
///
/// Weights are [out, in], as in torch.nn.Linear. Every form gives the result of forward() on one
/// rank, or its slice, until an optimizer changes the shards or the whole weights. Each backward
/// belongs to the forward with the same context. A rank's gradients by whole weights are those of
/// the rank's inputs; `partial` names the axes over which sync_grads() must add them.
///
/// T is float, double or bf16. The block is made where the thread's arrays lie. Parameters that
/// parallelize() has cut may be moved to an accelerator (move_to()).
///
/// Throws Error(invalid_argument), before anything is sent, if a shape or a dimension does not fit,
/// or parallelize() has not been called.
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
  /// are cut into the shards below. With `sequence_parallel`, the activations between the
  /// tensor-parallel regions are cut along the sequence over the same ranks (Korthikanti et al.,
  /// Reducing activation recomputation in large transformer models, 2022). Along axis sp, positions
  /// are cut, and exchanged for heads around attention; if axis sp has a multiple of the number of
  /// k and v heads, these heads are repeated. Throws if heads, kv_heads or d_ff cannot be cut
  /// equally. Nothing is sent.
  void parallelize(const Mesh& mesh, bool sequence_parallel = false);
  /// Gives up the weights that forward_parallel() does not need: the whole ones of which there are
  /// parts, or the parts. forward() and the other forms cannot be used any more.
  void forget_other_forms();
  /// parallelize() for tensor parallelism alone.
  void init_tensor_parallel_shards(const Mesh& mesh) { parallelize(mesh); }

  /// Forward with x and y whole on every rank of axis tp. Two all-reduces. Shoeybi et al.,
  /// Megatron-LM (2019). Throws if parallelize() cut other axes, since gradients would be summed
  /// wrongly.
  Array<T> forward_tensor_parallel(const Array<T>& x, Context& context);
  /// The gradient by x, whole on every rank. Two all-reduces.
  Array<T> backward_tensor_parallel(const Array<T>& dy, Context& context);
  /// Forward with x_shard and y [batch, seq / P, d_model] cut along axis sp. Four all-to-alls.
  /// Jacobs et al., DeepSpeed-Ulysses (2023). Throws like forward_tensor_parallel().
  Array<T> forward_ulysses(const Array<T>& x_shard, Context& context);
  /// The gradient by x_shard. Four all-to-alls.
  Array<T> backward_ulysses(const Array<T>& dy_shard, Context& context);
  /// Forward in the form that parallelize() prepared, with x and y [batch, seq / (sp · tp if
  /// sequence_parallel), d_model], cut along sp first.
  Array<T> forward_parallel(const Array<T>& x_shard, Context& context);
  /// The gradient by x_shard.
  Array<T> backward_parallel(const Array<T>& dy_shard, Context& context);
  /// The messages of this rank in forward_parallel() and backward_parallel() for an x of this
  /// shape, in order. Sends nothing. Collective.
  std::vector<BudgetLine> budget(const Shape& x_shard);
  /// This block as a module whose forward is forward_parallel().
  Module<T>& parallel() { return parallel_; }

  /// A form of the block as data: the parameters it computes with, and the exchanges between them.
  struct Form {
    Param<T>*q, *k, *v, *o, *fc1, *fc1_bias, *fc2;
    Param<T>*q_bias, *k_bias, *v_bias;  ///< empty without attention_bias
    /// Around the tensor-parallel regions: before the first linear layers, and after the last.
    struct {
      Exchange enter, leave;
    } attention, feed_forward;
    Exchange to_heads, to_positions;        ///< for q, k and v before attention, and for its result
    int repeats = 1;                        ///< of each k and v head, before it is sent
    std::int64_t heads = 0, key_heads = 0;  ///< of this rank's linear layers
    std::int64_t first_head = 0;            ///< of this rank's heads in attention
    int parts = 1, part = 0;                ///< x is this part of the sequence
  };
  /// The form along these axes. `sequence_parallel` as in parallelize(); false without axis tp.
  Form form(Axes axes, bool sequence_parallel);
  /// The form that parallelize() prepared.
  Form parallel_form();
  /// Forward in this form.
  Array<T> forward(const Array<T>& x, Context& context, const Form& form);
  /// Backward in this form.
  Array<T> backward(const Array<T>& dy, Context& context, const Form& form);
  /// The parameters of this form.
  Params<T> params(const Form& form);

  /// Sizes and settings.
  const BlockConfig& config() const { return config_; }
  /// The parameters of forward(). Those of forward_parallel() are parallel().params().
  Params<T> params() override { return params(form({}, false)); }

  Param<T> norm1_weight, norm1_bias, norm2_weight, norm2_bias;  ///< [d_model]
  Param<T> q_proj, o_proj;                                      ///< [d_model, d_model]
  Param<T> k_proj, v_proj;  ///< [kv_heads · head size, d_model]
  /// As many as outputs; empty without attention_bias.
  Param<T> q_proj_bias, k_proj_bias, v_proj_bias, o_proj_bias;
  Param<T> fc1, fc1_bias;  ///< [d_ff, d_model], [d_ff]
  Param<T> fc2, fc2_bias;  ///< [d_model, d_ff], [d_model]
  /// Parts of the above along axis tp: by outputs, but o_proj and fc2 by inputs.
  Param<T> q_proj_shard, k_proj_shard, v_proj_shard, o_proj_shard;
  Param<T> q_proj_bias_shard, k_proj_bias_shard, v_proj_bias_shard;
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
#pragma GCC visibility pop
