#pragma once
/// What is trained, and how its ranks divide it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../mesh.hpp"
#include "../models/gpt2.hpp"
#include "../training/data_parallel.hpp"
#include "baton/data.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// A step of training of a GPT-2.
struct StepModel {
  Gpt2Config gpt2;
  Datatype type = Datatype::f32;  ///< of parameters, gradients and activations
  int states = 2;                 ///< elements that the optimizer keeps for a parameter
  std::int64_t batch = 1;         ///< samples of a step, on all ranks
  std::int64_t seq = 1024;        ///< positions of a sample
};

/// How ranks divide a step: axis tp varies fastest with the rank, then sp, dp, pp.
struct StepLayout {
  int dp = 1, tp = 1, sp = 1, pp = 1;
  std::optional<ShardingStage> stage = {};  ///< over dp and sp; none: all is replicated
  bool sequence_parallel = false;           ///< of axis tp
  int micro_batches = 1;
  std::string schedule = "1f1b";  ///< of the pipeline
  int stages_per_rank = 1;
  std::vector<std::int64_t> cuts =
      {};  ///< first layers of stages but the first; empty: by parameters

  /// The number of ranks, or 2^31 - 1 if there are more.
  int ranks() const;
  /// The number of stages of the pipeline.
  int stages() const { return pp * stages_per_rank; }
  bool operator==(const StepLayout&) const = default;
};
/// For example "dp 2 x tp 4 x pp 2, stage 1".
std::string print(const StepLayout& layout);
/// Why this layout cannot train the model, as a sentence; empty if it can.
std::string refusal(const StepModel& model, const StepLayout& layout);

/// The place of a rank along each axis.
struct StepPlace {
  int dp = 0, tp = 0, sp = 0, pp = 0;
};
StepPlace place_of(const StepLayout& layout, int rank);         ///< of a rank
int rank_at(const StepLayout& layout, const StepPlace& place);  ///< at a place

/// Ranks that exchange something, in the order of their places; `own` is the index of the rank that
/// asks.
struct StepGroup {
  std::vector<int> ranks;
  int own = 0;
};
/// The ranks that differ from this one along these axes only.
StepGroup group_of(const StepLayout& layout, int rank, Axes along);
/// The number of ranks along these axes.
int size_of(const StepLayout& layout, Axes along);
/// The axes along which there is more than one rank.
Axes without_ones(const StepLayout& layout, Axes along);

/// The part of one rank.
struct StepShare {
  std::int64_t samples = 0;      ///< of a micro-batch, of the rank that has most
  std::int64_t positions = 0;    ///< of a sample, along axis sp
  std::int64_t activations = 0;  ///< elements of [samples, positions, d_model]
  std::int64_t boundary = 0;     ///< elements that cross to the next stage, for a micro-batch
};
/// Of every rank.
StepShare share_of(const StepModel& model, const StepLayout& layout);

/// A parameter of a rank.
struct StepParam {
  std::int64_t elements = 0;
  Axes partial;         ///< axes along which its gradient is partial, as in Param
  bool shared = false;  ///< with another stage of the pipeline
};
/// Parameters that are used together: embeddings, one block, or the head.
struct StepUnit {
  /// What the parameters are of.
  enum class Kind : std::uint8_t { embeddings, block, head };
  Kind kind = Kind::block;
  int layer = -1;  ///< of a block
  int stage = 0;   ///< of the pipeline
  /// In the order of Model::units(); those of a block as backward completes them (BlockParam).
  std::vector<StepParam> params;

  /// Of all parameters.
  std::int64_t elements() const;
};
/// Places of a block's parameters in StepUnit::params.
enum BlockParam : std::uint8_t {
  fc2_bias,
  fc2,
  fc1,
  fc1_bias,
  norm2_weight,
  norm2_bias,
  o_bias,
  o,
  q,
  q_bias,
  k,
  k_bias,
  v,
  v_bias,
  norm1_weight,
  norm1_bias,
};
inline constexpr int block_param_count = 16;
/// Those of a rank of axis pp, by stage, in the order of forward. Without a pipeline, the final
/// norm is with the embeddings.
std::vector<StepUnit> units_of(const StepModel& model, const StepLayout& layout, int pp);
/// The layers of a stage: first, and one past the last.
std::pair<int, int> layers_of(const StepModel& model, const StepLayout& layout, int stage);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
