#pragma once
/// How long the computations of a step take.

#include <cstdint>
#include <optional>

#include "baton/export.hpp"
#include "layout.hpp"

namespace BATON_API baton {
namespace transformer {

/// The speed of a rank.
struct ComputeRate {
  double forward = 0, backward = 0;  ///< operations (a product and a sum are two) in a ns
  double optimizer_ns = 0;           ///< of the optimizer, for a parameter
};
/// Measures it on this machine: a block of this model, forward and backward, and AdamW. Takes some
/// seconds.
ComputeRate measured_rate(const StepModel& model);

/// Times of a rank, in ns. Given ones replace those that a rate implies.
struct ComputeTimes {
  std::int64_t block_forward = 0, block_backward = 0;  ///< for a micro-batch
  std::int64_t head_forward = 0, head_backward = 0;    ///< likewise; with the loss
  double optimizer_ns = 0;                             ///< for a parameter that the rank updates
};
/// Operations over speed: of matrix products, and of causal attention's.
ComputeTimes times_at(const StepModel& model, const StepLayout& layout, const ComputeRate& rate);

/// Operations of a block's forward for a micro-batch on a rank, in the order in which they are
/// done: q, k and v; attention; its projection; the feed-forward part.
struct BlockOperations {
  double qkv = 0, attention = 0, projection = 0, feed_forward = 0;
  /// Of all.
  double total() const { return qkv + attention + projection + feed_forward; }
};
/// Of a block on one rank of the layout.
BlockOperations block_operations(const StepModel& model, const StepLayout& layout);

}  // namespace transformer
}  // namespace baton
