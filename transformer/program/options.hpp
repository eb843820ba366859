#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../block.hpp"
#include "../mesh.hpp"
#include "../models/gpt2.hpp"
#include "../models/vgg16.hpp"
#include "../pipeline/schedule.hpp"
#include "../training/data_parallel.hpp"

namespace baton::transformer::program {

enum class ModelKind : std::uint8_t { mlp, block, gpt2, vgg16 };
enum class Parallel : std::uint8_t { none, dp, fsdp, tp, sp, tp_sp, pp, mp };
enum class Split : std::uint8_t { parameters, time };
enum class OptimizerKind : std::uint8_t { sgd, momentum, adamw };
std::string_view name(ModelKind model);
std::string_view name(Parallel parallel);
std::string_view name(OptimizerKind optimizer);

/// The options of a training run.
struct TrainOptions {
  ModelKind model = ModelKind::mlp;
  Parallel parallel = Parallel::none;
  int ranks = 0;         ///< 0: of the launcher, else 1 without parallelism, 2 with it, 4 of tp-sp
  int tp = 0;            ///< ranks along axis tp of tp-sp, dp and fsdp; 0: 2 of tp-sp, 1 of others
  int sp = 1;            ///< ranks along axis sp of dp, fsdp, pp and mp
  int pp = 0;            ///< ranks along axis pp of dp and fsdp; 0: 1, of pp and mp the rest
  std::string schedule;  ///< of a pipeline: an algorithm, or a file; empty: 1f1b, of mp naive
  int stages_per_rank = 1;
  std::vector<std::int64_t> cuts;  ///< first layers of stages but the first; empty: by `split`
  Split split = Split::parameters;
  PipelineSchedule pipeline;  ///< that all this makes, when it is settled
  bool overlap = true;        ///< of sums of gradients with backward; of dp
  ShardingStage sharding = ShardingStage::parameters;  ///< of fsdp
  bool sequence_parallel = false;
  Datatype dtype = Datatype::f32;    ///< f32, f64 or bf16
  int threads = 1;                   ///< of each rank's matrix products
  double emulated_gflops = 0;        ///< of computations that are not made; 0: they are
  double emulated_optimizer_ns = 1;  ///< for a parameter, of theirs
  int cores_per_rank = 0;            ///< that it is pinned to; 0: it runs anywhere

  std::int64_t hidden = 32;  ///< of the MLP
  double noise = 0.1;        ///< of the two moons
  BlockConfig block{.d_model = 64, .heads = 8, .d_ff = 256};
  std::int64_t layers = 1, seq = 32;  ///< of blocks

  std::vector<std::string> text;  ///< files, of GPT-2
  std::string preset = "tiny";

  std::string images;      ///< folder, of VGG16
  std::string load, save;  ///< files of weights, of GPT-2 and VGG16; empty: none
  Vgg16Config vgg16;

  Gpt2Config gpt2;
  double validation = 0.1;  ///< share of the text that is not trained on
  std::int64_t validation_samples = 64;
  std::int64_t writes = 40;  ///< tokens, at the end
  std::string prompt = "In the beginning";
  double temperature = 0.8;

  std::int64_t samples = 0;     ///< 0: 256 of the two moons, 8 sequences, all of a text
  std::int64_t batch_size = 0;  ///< 0: all samples
  int micro_batches = 1;
  int epochs = 20;
  std::int64_t steps = 0;  ///< at most, in all epochs; 0: any number
  std::int64_t warmup = 0;
  double least_rate = -1;  ///< the learning rate falls to it; below 0: it stays
  double clip = 0;         ///< largest norm of all gradients; 0: any
  OptimizerKind optimizer = OptimizerKind::sgd;
  std::optional<double> learning_rate;
  double weight_decay = 1e-2;
  std::uint64_t seed = 1;

  std::string checkpoint, resume;     ///< files; empty: none
  std::int64_t checkpoint_steps = 0;  ///< between two checkpoints; 0: an epoch's

  /// Compared with the same training on one rank; losses with outputs.
  bool check_output = false, check_weights = false, check_gradients = false;
  std::optional<double> tolerance;
  bool budget = false;
  bool json = false;

  /// Whether ranks have different layers.
  bool pipelined() const { return parallel == Parallel::pp || parallel == Parallel::mp || pp > 1; }
  /// Whether rank 0 trains alone, too.
  bool checks() const { return check_output || check_weights || check_gradients; }
  double rate() const {
    if (learning_rate) return *learning_rate;
    return optimizer == OptimizerKind::sgd        ? 0.1
           : optimizer == OptimizerKind::momentum ? 0.01
                                                  : 1e-3;
  }
  double allowed() const {
    return tolerance.value_or(dtype == Datatype::f64    ? 1e-12
                              : dtype == Datatype::bf16 ? 1.6e-2
                                                        : 1e-5);
  }
  /// Of one step.
  std::int64_t batch() const { return batch_size > 0 ? batch_size : samples; }
  /// Of the mesh of all ranks; the last varies fastest.
  std::vector<std::pair<Axis, int>> axes() const;
};

/// Options of the command line, which set `options` when they are parsed.
void add_options(CLI::App& app, TrainOptions& options);

/// Fills in what depends on the model. Throws Error(invalid_argument) where an option was given
/// that would have no effect.
void complete(const CLI::App& app, TrainOptions& options);

/// Fills in what was left open, with `launched` ranks of a launcher, or 0. Throws
/// Error(invalid_argument) where options do not fit each other.
void settle(TrainOptions& options, int launched);

}  // namespace baton::transformer::program
