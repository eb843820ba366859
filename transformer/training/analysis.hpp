#pragma once
/// A calculator: the bytes that a rank holds and sends in training, from sizes alone. Nothing is
/// allocated or sent.

#include <cstdint>
#include <optional>
#include <vector>

#include "../block.hpp"
#include "baton/collective.hpp"
#include "baton/data.hpp"
#include "data_parallel.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Bytes that training keeps for each parameter.
struct ParameterBytes {
  std::int64_t value = 4, gradient = 4;
  std::int64_t optimizer = 0;  ///< the master, where there is one, and the optimizer's state
};
/// `states` is the number of elements that the optimizer keeps for a parameter: SGD 0, SGD with
/// momentum 1, AdamW 2. They are as wide as the parameter, and at least f32; parameters of 16 bits
/// have a master in f32 beside them. Throws Error(invalid_argument) unless both types are f16,
/// bf16, f32 or f64.
ParameterBytes parameter_bytes(Datatype parameters, Datatype gradients, int states);

/// A model that is trained by data parallelism (data_parallel.hpp).
struct AnalyzedModel {
  /// Elements of what is divided, or summed, by itself: Model::units(), buckets, or one for all.
  std::vector<std::int64_t> units;
  ParameterBytes bytes;
  int ranks = 1;
  int micro_batches = 1;  ///< of a step
  /// Whether a unit that is divided is extended to a multiple of the ranks, so that all shards have
  /// ceil(n / P) elements. Otherwise they are those of shard_of().
  bool padded = false;
};

/// The bytes that a rank holds. Activations, gathered units and buffers of messages come on top.
struct HeldBytes {
  std::int64_t parameters = 0, gradients = 0, optimizer = 0;

  /// All of it.
  std::int64_t total() const { return parameters + gradients + optimizer; }
  bool operator==(const HeldBytes&) const = default;
};
/// Of one rank, with the model divided as `stage` says, or replicated. Throws
/// Error(invalid_argument) unless there are 1 to 10^6 ranks and 1 to 10^4 micro-batches, `rank` is
/// one of the ranks, and the units have at most 10^13 elements in all.
HeldBytes held_bytes(const AnalyzedModel& model, std::optional<ShardingStage> stage, int rank);
/// Of the rank that holds the most: ceil(n / P) elements of each unit that is divided.
HeldBytes most_held_bytes(const AnalyzedModel& model, std::optional<ShardingStage> stage);

/// The bytes that a rank sends in a step, by ring collectives.
struct SentBytes {
  std::int64_t gradients = 0;   ///< all_reduce of what is replicated, else reduce_scatter
  std::int64_t parameters = 0;  ///< all_gather

  /// All of it.
  std::int64_t total() const { return gradients + parameters; }
  bool operator==(const SentBytes&) const = default;
};
/// Of one rank: gradients are sent once in a step, at stages 2 and 3 in each micro-batch;
/// parameters once at stages 1 and 2, twice in each micro-batch at stage 3. Throws like
/// held_bytes().
SentBytes sent_bytes(const AnalyzedModel& model, std::optional<ShardingStage> stage, int rank);
/// Of the rank that sends the most.
SentBytes most_sent_bytes(const AnalyzedModel& model, std::optional<ShardingStage> stage);

/// Elements that a rank sends in a ring all_reduce, reduce_scatter or all_gather (algorithm "ring")
/// of a vector of `elements` in all: 2(P-1)/P n for all_reduce, (P-1)/P n for the others, exactly
/// where P divides n. Chunks of all_reduce are those of chunk_count(), blocks of the others those
/// of shard_of(). Throws Error(invalid_argument) for other collectives.
std::int64_t ring_sent(Collective collective, std::int64_t elements, int ranks, int rank);

/// The bytes that a block, whole on one rank, keeps from forward to backward for an x of this
/// shape, [batch, seq, d_model], x among them. With d_ff = 4 d_model, as many heads of k and v as
/// of q and GELU: 16 of the size of x, and statistics, 4 + heads for each position. Throws
/// Error(invalid_argument) if dimensions do not fit, or x has more than 10^13 elements.
std::int64_t block_kept_bytes(const BlockConfig& block, const Shape& x, Datatype type);
/// The same of a language model's last norm, head and loss, for the x of the norm: x, its norm,
/// statistics, and gradients of the logits [batch, seq, vocabulary].
std::int64_t head_kept_bytes(std::int64_t vocabulary, const Shape& x, Datatype type);

/// Bytes of activations [batch, seq, d_model], which cross each boundary between two stages of a
/// pipeline once in forward, their gradients once in backward. Throws Error(invalid_argument) if
/// there are more than 10^13 elements.
std::int64_t boundary_bytes(const Shape& activations, Datatype type);
/// The bytes that stage `rank` of `ranks` sends over its boundaries in a step: forward to the next
/// one, backward to the one before.
std::int64_t pipeline_sent_bytes(std::int64_t boundary, int ranks, int rank);

/// The time of `bytes` at this many gigabits (10^9) per second. Latency comes on top.
double transfer_seconds(std::int64_t bytes, double gigabits_per_second);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
