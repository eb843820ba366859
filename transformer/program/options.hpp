#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../block.hpp"
#include "../mesh.hpp"

namespace baton::transformer::program {

enum class Model : std::uint8_t { mlp, block };
enum class Parallel : std::uint8_t { none, dp, tp, sp, tp_sp };
enum class OptimizerKind : std::uint8_t { sgd, adamw };
std::string_view name(Model model);
std::string_view name(Parallel parallel);
std::string_view name(OptimizerKind optimizer);

/// The options of a training run.
struct TrainOptions {
  Model model = Model::mlp;
  Parallel parallel = Parallel::none;
  int ranks = 0;  ///< 0: of the launcher, else 1 without parallelism, 2 with it, 4 of tp-sp
  int tp = 2;     ///< ranks along axis tp of tp-sp
  bool sequence_parallel = false;
  bool f64 = false;
  int threads = 1;  ///< of each rank's matrix products

  std::int64_t hidden = 32;  ///< of the MLP
  double noise = 0.1;        ///< of the two moons
  BlockConfig block{.d_model = 64, .heads = 8, .d_ff = 256};
  std::int64_t layers = 1, seq = 32;  ///< of blocks

  std::int64_t samples = 0;     ///< 0: 256 of the two moons, 8 sequences
  std::int64_t batch_size = 0;  ///< 0: all samples
  int micro_batches = 1;
  int epochs = 20;
  OptimizerKind optimizer = OptimizerKind::sgd;
  std::optional<double> learning_rate;
  double weight_decay = 1e-2;
  std::uint64_t seed = 1;

  bool check = false;
  std::optional<double> tolerance;
  bool budget = false;
  bool json = false;

  double rate() const {
    return learning_rate.value_or(optimizer == OptimizerKind::sgd ? 0.1 : 1e-3);
  }
  double allowed() const { return tolerance.value_or(f64 ? 1e-12 : 1e-5); }
  /// Of one step.
  std::int64_t batch() const { return batch_size > 0 ? batch_size : samples; }
  /// Of the mesh of all ranks; the last varies fastest.
  std::vector<std::pair<Axis, int>> axes() const;
};

/// Options of the command line, which set `options` when they are parsed.
void add_options(CLI::App& app, TrainOptions& options);

/// Throws Error(invalid_argument) where an option was given that would have no effect.
void expect_effect(const CLI::App& app, const TrainOptions& options);

/// Fills in what was left open, with `launched` ranks of a launcher, or 0. Throws
/// Error(invalid_argument) where options do not fit each other.
void settle(TrainOptions& options, int launched);

}  // namespace baton::transformer::program
