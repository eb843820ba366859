#pragma once
/// How long the computations of a step take.

#include <array>
#include <cstdint>
#include <optional>

#include "layout.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// The speed of a rank.
struct ComputeRate {
  double forward = 0, backward = 0;  ///< operations (a product and a sum are two) in a ns
  double optimizer_ns = 0;           ///< of the optimizer, for a parameter
};
/// Measures it on this machine: a block of this model, forward and backward, and AdamW. Takes some
/// seconds.
ComputeRate measured_rate(const StepModel& model);

/// Computations of a block, in their order.
enum class BlockForward : std::uint8_t { norm1, q, k, v, attention, o, norm2, fc1, fc2, sum };
inline constexpr std::size_t block_forward_count = 10;
/// Gradients, by input and by weights.
enum class BlockBackward : std::uint8_t {
  fc2_bias,  ///< and what else comes before the first product
  fc2_input,
  fc1_input,
  fc2_weight,
  fc1_weight,
  norm2,
  o_input,
  o_weight,
  attention,
  q_input,
  k_input,
  v_input,
  q_weight,
  k_weight,
  v_weight,
  norm1,
};
inline constexpr std::size_t block_backward_count = 16;
/// Whether `work` computes gradients of weights. Nothing in backward waits for it.
bool by_weights(BlockBackward work);

/// ns of a micro-batch on a rank.
struct PartTimes {
  std::array<std::int64_t, block_forward_count> block_forward{};
  std::array<std::int64_t, block_backward_count> block_backward{};
  std::int64_t embedding_forward = 0, embedding_backward = 0;
  std::int64_t head_norm = 0, head_forward = 0;  ///< its norm; its product and the loss
  std::int64_t head_input = 0, head_weight = 0, head_norm_backward = 0;

  /// Of one computation of a block.
  std::int64_t at(BlockForward work) const { return block_forward[static_cast<std::size_t>(work)]; }
  /// Likewise.
  std::int64_t at(BlockBackward work) const {
    return block_backward[static_cast<std::size_t>(work)];
  }
};

/// Times of a rank, in ns. Given ones replace those that a rate implies.
struct ComputeTimes {
  std::int64_t block_forward = 0, block_backward = 0;  ///< for a micro-batch
  std::int64_t head_forward = 0, head_backward = 0;    ///< likewise; with the loss
  double optimizer_ns = 0;                             ///< for a parameter that the rank updates
  /// Measured one by one. Otherwise those of a block follow from its own, by operations.
  std::optional<PartTimes> parts = {};
};
/// Operations over speed: of matrix products, and of causal attention's.
ComputeTimes times_at(const StepModel& model, const StepLayout& layout, const ComputeRate& rate);
/// Measures each computation of a rank of this layout, in its shapes, and AdamW, on `at_once`
/// threads at the same time: ranks that share a machine slow each other down. Of float. Makes two
/// to six times forward and backward of at most 4 blocks, of the head and of the optimizer, and
/// stops when that takes more than 2 s. Throws Error(invalid_argument) if the layout cannot train
/// the model.
ComputeTimes measured_times(const StepModel& model, const StepLayout& layout, int at_once = 1);
/// The parts of these times, which add up to them.
PartTimes parts_of(const StepModel& model, const StepLayout& layout, const ComputeTimes& times);

/// Operations of a block for a micro-batch on a rank.
std::array<double, block_forward_count> forward_operations(const StepModel& model,
                                                           const StepLayout& layout);
/// Likewise: twice those of forward.
std::array<double, block_backward_count> backward_operations(const StepModel& model,
                                                             const StepLayout& layout);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
