#include "options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "../shape_guard.hpp"
#include "values.hpp"

namespace baton::transformer::program {
namespace {

const Names<Model> models = {{"mlp", Model::mlp}, {"block", Model::block}};
const Names<Parallel> parallels = {{"none", Parallel::none},
                                   {"dp", Parallel::dp},
                                   {"tp", Parallel::tp},
                                   {"sp", Parallel::sp},
                                   {"tp-sp", Parallel::tp_sp}};
const Names<OptimizerKind> optimizers = {{"sgd", OptimizerKind::sgd},
                                         {"adamw", OptimizerKind::adamw}};
const Names<bool> dtypes = {{"f32", false}, {"f64", true}};
const Names<Activation> activation_names = {
    {"relu", Activation::relu}, {"gelu", Activation::gelu}, {"gelu_tanh", Activation::gelu_tanh}};

void expect_divisible(const TrainOptions& options) {
  int tp = 1, sp = 1;
  for (const auto& [axis, size] : options.axes()) {
    if (axis == Axis::tp) tp = size;
    if (axis == Axis::sp) sp = size;
  }
  if (options.model == Model::mlp) {
    expect_multiple("--hidden", options.hidden, tp, "ranks of tp");
    return;
  }
  options.block.check();
  expect_multiple("--heads", options.block.heads, tp * sp, "ranks of tp x sp");
  expect_multiple("--kv-heads", options.block.key_heads(), tp, "ranks of tp");
  const std::int64_t key_heads = options.block.key_heads() / tp;
  if (key_heads % sp != 0) {  // then ranks share them
    expect_multiple("ranks of sp", sp, key_heads, "--kv-heads on each rank of tp");
  }
  expect_multiple("--d-ff", options.block.d_ff, tp, "ranks of tp");
  expect_multiple("--seq", options.seq, options.sequence_parallel ? tp * sp : sp,
                  options.sequence_parallel ? "ranks of tp x sp" : "ranks of sp");
}

}  // namespace

std::string_view name(Model model) { return name_in(models, model); }
std::string_view name(Parallel parallel) { return name_in(parallels, parallel); }
std::string_view name(OptimizerKind optimizer) { return name_in(optimizers, optimizer); }

std::vector<std::pair<Axis, int>> TrainOptions::axes() const {
  switch (parallel) {
    case Parallel::none:
      return {};
    case Parallel::dp:
      return {{Axis::dp, ranks}};
    case Parallel::tp:
      return {{Axis::tp, ranks}};
    case Parallel::sp:
      return {{Axis::sp, ranks}};
    case Parallel::tp_sp:
      return {{Axis::sp, ranks / tp}, {Axis::tp, tp}};
  }
  return {};
}

void add_options(CLI::App& app, TrainOptions& options) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_choice(app, "--model", options.model, models,
             "mlp: linear, GELU, linear, on two moons; block: transformer blocks, on random data");
  add_choice(app, "--parallel", options.parallel, parallels,
             "samples (dp), weights (tp) or positions (sp, block only) are shared among ranks");
  app.add_option("--ranks", options.ranks, "threads as ranks; under mpirun, its processes are")
      ->check(whole_number(1, 4096));
  app.add_option("--tp", options.tp, "of the ranks of tp-sp, those along tp [2]")
      ->check(whole_number(1, 4096));
  app.add_flag("--sequence-parallel", options.sequence_parallel,
               "with tp: positions are cut between the parallel regions (Megatron)");
  add_choice(app, "--dtype", options.f64, dtypes, "of weights and activations [f32]");
  app.add_option("--threads", options.threads, "of each rank's linear layers [1]")
      ->check(whole_number(1, 1024));

  app.add_option("--hidden", options.hidden, "mlp: hidden units [32]")->check(whole_number(1));
  app.add_option("--noise", options.noise, "mlp: standard deviation added to points [0.1]")
      ->check(number(0, HUGE_VAL));
  app.add_option("--layers", options.layers, "block: number of blocks [1]")->check(whole_number(1));
  app.add_option("--d-model", options.block.d_model, "block [64]")->check(whole_number(1));
  app.add_option("--heads", options.block.heads, "block [8]")->check(whole_number(1));
  app.add_option("--kv-heads", options.block.kv_heads, "block: of keys and values [as --heads]")
      ->check(whole_number(1));
  app.add_option("--d-ff", options.block.d_ff, "block [256]")->check(whole_number(1));
  app.add_option("--seq", options.seq, "block: positions of a sequence [32]")
      ->check(whole_number(1));
  app.add_flag("--causal", options.block.causal, "block: a position sees itself and those before");
  add_choice(app, "--activation", options.block.activation, activation_names, "block [relu]");
  const auto dropout = [&options](const double& p) {
    options.block.attention_dropout = options.block.hidden_dropout = p;
  };
  app.add_option_function<double>("--dropout", dropout, "block: probability [0]")
      ->check(number(0, 1));

  app.add_option("--samples", options.samples, "points [256] or sequences [8]")
      ->check(whole_number(1));
  app.add_option("--batch-size", options.batch_size, "samples of a step [all]")
      ->check(whole_number(1));
  app.add_option("--micro-batches", options.micro_batches,
                 "slices of a batch whose gradients are added [1]")
      ->check(whole_number(1));
  app.add_option("--epochs", options.epochs, "passes over all samples [20]")
      ->check(whole_number(1));
  add_choice(app, "--optimizer", options.optimizer, optimizers, "[sgd]");
  app.add_option("--lr", options.learning_rate, "learning rate [0.1; adamw 0.001]")
      ->check(number(0, HUGE_VAL));
  app.add_option("--weight-decay", options.weight_decay, "of adamw [0.01]")
      ->check(number(0, HUGE_VAL));
  app.add_option("--seed", options.seed, "of weights, data and dropout [1]")
      ->check(whole_number(0, INT64_MAX));

  app.add_flag("--check", options.check,
               "train on one rank beside it, and say how far the two are apart");
  app.add_option("--tolerance", options.tolerance,
                 "of --check, relative to the largest element [f32 1e-5, f64 1e-12]")
      ->check(number(0, HUGE_VAL));
  app.add_flag("--budget", options.budget,
               "block: only say what each rank sends in a step, and by which algorithms");
  // Answered by analyze(), which has options of its own.
  app.add_flag("--analyze")
      ->description("only calculate what ranks hold and send: baton-train --analyze --help");
  app.add_flag("--json", options.json, "one JSON object at the end, for scripts/plot");
}

void expect_effect(const CLI::App& app, const TrainOptions& options) {
  const auto expect = [&](bool holds, std::initializer_list<const char*> names,
                          std::string_view expected, std::string_view found) {
    for (const char* name : names) {
      if (!holds && app.count(name) > 0)
        refuse(fmt::format("{}: expected {}, found {}", name, expected, found));
    }
  };
  const std::string_view model = name(options.model);
  expect(options.model == Model::mlp, {"--hidden", "--noise"}, "--model mlp", model);
  expect(options.model == Model::block,
         {"--layers", "--d-model", "--heads", "--kv-heads", "--d-ff", "--seq", "--causal",
          "--activation", "--dropout"},
         "--model block", model);
  expect(options.parallel == Parallel::tp_sp, {"--tp"}, "--parallel tp-sp", name(options.parallel));
  expect(options.optimizer == OptimizerKind::adamw, {"--weight-decay"}, "--optimizer adamw",
         name(options.optimizer));
  expect(options.check, {"--tolerance"}, "--check", "none");
}

void settle(TrainOptions& options, int launched) {
  const bool alone = options.parallel == Parallel::none;
  if (launched > 0 && options.ranks > 0 && options.ranks != launched) {
    refuse(fmt::format("--ranks: expected the {} ranks of the launcher, found {}", launched,
                       options.ranks));
  }
  if (options.budget && options.model == Model::mlp)
    refuse("--budget: expected --model block, found mlp");
  if (options.budget && options.json) refuse("--budget: expected no --json, found it");
  if (launched > 0) options.ranks = launched;
  if (options.ranks == 0) options.ranks = alone ? 1 : options.parallel == Parallel::tp_sp ? 4 : 2;
  if (options.samples == 0) options.samples = options.model == Model::mlp ? 256 : 8;
  options.batch_size = std::min(options.batch(), options.samples);
  if (alone && options.ranks != 1)
    refuse(fmt::format("--parallel none: expected 1 rank, found {}", options.ranks));
  const bool cuts_positions =
      options.parallel == Parallel::sp || options.parallel == Parallel::tp_sp;
  if (options.model == Model::mlp && (cuts_positions || options.sequence_parallel)) {
    refuse(fmt::format("--model mlp: expected none, dp or tp, for it has no positions, found {}",
                       cuts_positions ? name(options.parallel) : "--sequence-parallel"));
  }
  if (options.sequence_parallel && options.parallel != Parallel::tp &&
      options.parallel != Parallel::tp_sp) {
    refuse(fmt::format("--sequence-parallel: expected --parallel tp or tp-sp, found {}",
                       name(options.parallel)));
  }
  if (options.parallel == Parallel::tp_sp)
    expect_multiple("--ranks", options.ranks, options.tp, "--tp");
  expect_divisible(options);
}

}  // namespace baton::transformer::program
