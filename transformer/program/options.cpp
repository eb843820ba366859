#include "options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "../pipeline/verify.hpp"
#include "../shape_guard.hpp"
#include "values.hpp"

namespace baton::transformer::program {
namespace {

const Names<ModelKind> models = {{"mlp", ModelKind::mlp},
                                 {"block", ModelKind::block},
                                 {"gpt2", ModelKind::gpt2},
                                 {"vgg16", ModelKind::vgg16}};
const Names<Parallel> parallels = {{"none", Parallel::none}, {"dp", Parallel::dp},
                                   {"fsdp", Parallel::fsdp}, {"tp", Parallel::tp},
                                   {"sp", Parallel::sp},     {"tp-sp", Parallel::tp_sp},
                                   {"pp", Parallel::pp},     {"mp", Parallel::mp}};
const Names<OptimizerKind> optimizers = {{"sgd", OptimizerKind::sgd},
                                         {"momentum", OptimizerKind::momentum},
                                         {"adamw", OptimizerKind::adamw}};
const Names<ShardingStage> shardings = {{"1", ShardingStage::optimizer},
                                        {"2", ShardingStage::gradients},
                                        {"3", ShardingStage::parameters}};
const Names<Split> splits = {{"parameters", Split::parameters}, {"time", Split::time}};
const Names<Datatype> dtypes = {
    {"f32", Datatype::f32}, {"f64", Datatype::f64}, {"bf16", Datatype::bf16}};
const Names<Activation> activation_names = {
    {"relu", Activation::relu}, {"gelu", Activation::gelu}, {"gelu_tanh", Activation::gelu_tanh}};

int along(const TrainOptions& options, Axis axis) {
  for (const auto& [its, size] : options.axes())
    if (its == axis) return size;
  return 1;
}

void expect_micro_batches(const TrainOptions& options, int dp) {
  if (options.micro_batches <= options.batch_size / dp) return;
  refuse(fmt::format("--micro-batches: expected at most the {} samples of a rank, found {}",
                     options.batch_size / dp, options.micro_batches));
}

void expect_divisible(const TrainOptions& options) {
  const int tp = along(options, Axis::tp), sp = along(options, Axis::sp),
            dp = along(options, Axis::dp);
  if (options.model == ModelKind::vgg16) {
    expect_multiple("--batch-size", options.batch_size, dp, "ranks of dp");
    expect_micro_batches(options, dp);
    return;
  }
  if (options.model == ModelKind::mlp) {
    expect_multiple("--hidden", options.hidden, tp, "ranks of tp");
    return;
  }
  const bool gpt2 = options.model == ModelKind::gpt2;
  const BlockConfig block = gpt2 ? options.gpt2.block(0) : options.block;
  block.check();
  expect_multiple("--heads", block.heads, tp * sp, "ranks of tp x sp");
  expect_multiple("--kv-heads", block.key_heads(), tp, "ranks of tp");
  const std::int64_t key_heads = block.key_heads() / tp;
  if (key_heads % sp != 0) {  // then ranks share them
    expect_multiple("ranks of sp", sp, key_heads, "--kv-heads on each rank of tp");
  }
  expect_multiple("--d-ff", block.d_ff, tp, "ranks of tp");
  expect_multiple("--seq", options.seq, options.sequence_parallel ? tp * sp : sp,
                  options.sequence_parallel ? "ranks of tp x sp" : "ranks of sp");
  if (!gpt2) return;
  expect_multiple("--vocabulary", options.gpt2.vocabulary, tp, "ranks of tp");
  expect_multiple("--batch-size", options.batch_size, dp, "ranks of dp");
  expect_micro_batches(options, dp);
}

}  // namespace

std::string_view name(ModelKind model) { return name_in(models, model); }
std::string_view name(Parallel parallel) { return name_in(parallels, parallel); }
std::string_view name(OptimizerKind optimizer) { return name_in(optimizers, optimizer); }

std::vector<std::pair<Axis, int>> TrainOptions::axes() const {
  switch (parallel) {
    case Parallel::none:
      return {};
    case Parallel::dp:
    case Parallel::fsdp: {
      std::vector<std::pair<Axis, int>> axes;
      if (pp > 1) axes.emplace_back(Axis::pp, pp);
      axes.emplace_back(Axis::dp, ranks / (tp * sp * std::max(pp, 1)));
      if (sp > 1) axes.emplace_back(Axis::sp, sp);
      if (tp > 1) axes.emplace_back(Axis::tp, tp);
      return axes;
    }
    case Parallel::pp:
    case Parallel::mp: {
      std::vector<std::pair<Axis, int>> axes{{Axis::pp, ranks / (tp * sp)}};
      if (sp > 1) axes.emplace_back(Axis::sp, sp);
      if (tp > 1) axes.emplace_back(Axis::tp, tp);
      return axes;
    }
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
             "mlp: linear, GELU, linear, on two moons; block: transformer blocks, on random data; "
             "gpt2: a language model, on text; vgg16: a model of images");
  add_choice(app, "--parallel", options.parallel, parallels,
             "samples (dp), weights (tp) or positions (sp, of block and gpt2) are shared among "
             "ranks; fsdp: samples, and with them parameters, gradients and the optimizer's state; "
             "layers (pp: a pipeline of micro-batches; mp: one rank at a time)");
  app.add_option("--ranks", options.ranks, "threads as ranks; under mpirun, its processes are")
      ->check(whole_number(1, 4096));
  app.add_option("--tp", options.tp,
                 "of the ranks of tp-sp [2], dp, fsdp, pp or mp [1], those along tp")
      ->check(whole_number(1, 4096));
  app.add_option("--sp", options.sp, "of the ranks of dp, fsdp, pp or mp, those along sp [1]")
      ->check(whole_number(1, 4096));
  app.add_option("--pp", options.pp, "of the ranks of dp or fsdp, those along pp [1]")
      ->check(whole_number(1, 4096));
  app.add_option("--schedule", options.schedule,
                 "of a pipeline: naive, gpipe, 1f1b, interleaved_1f1b, zb_h1 or FILE.csv; see "
                 "baton-train pipeline --help [1f1b; mp: naive]");
  app.add_option("--stages-per-rank", options.stages_per_rank, "of a pipeline [1]")
      ->check(whole_number(1, 1024));
  app.add_option("--cuts", options.cuts,
                 "first layers of a pipeline's stages but the first, 3,6 for example [by --split]")
      ->delimiter(',')
      ->check(whole_number(1));
  add_choice(app, "--split", options.split, splits,
             "a pipeline's stages have about as many parameters, or take about as long forward and "
             "backward, as rank 0 measures layers [parameters]");
  add_choice(app, "--stage", options.sharding, shardings,
             "of fsdp: divides the optimizer's state (1), gradients, too (2), parameters, too (3) "
             "[3]");
  app.add_flag("!--no-overlap", options.overlap,
               "with dp: gradients are summed after backward, not while it goes on");
  app.add_flag("--sequence-parallel", options.sequence_parallel,
               "with tp: positions are cut between the parallel regions (Megatron)");
  add_choice(
      app, "--dtype", options.dtype, dtypes,
      "of weights and activations; of bf16, masters and the optimizer's state are f32 [f32]");
  app.add_option("--threads", options.threads, "of each rank's linear layers [1]")
      ->check(whole_number(1, 1024));
  app.add_option(
         "--emulate-gflops", options.emulated_gflops,
         "computes nothing: each rank sleeps for the time of its products at this speed (10^9 "
         "operations a second)")
      ->check(number(1e-6, 1e15));
  app.add_option("--emulate-optimizer-ns", options.emulated_optimizer_ns,
                 "likewise the optimizer, for a parameter [1]")
      ->check(number(0, 1e9));
  app.add_option("--cores-per-rank", options.cores_per_rank,
                 "each rank runs on so many cores, of its own where there are enough, otherwise "
                 "round-robin [any]")
      ->check(whole_number(1, 4096));

  app.add_option("--hidden", options.hidden, "mlp: hidden units [32]")->check(whole_number(1));
  app.add_option("--noise", options.noise, "mlp: standard deviation added to points [0.1]")
      ->check(number(0, HUGE_VAL));
  app.add_option("--layers", options.layers, "block: number of blocks [1]; gpt2 [the preset's]")
      ->check(whole_number(1));
  app.add_option("--d-model", options.block.d_model, "block [64], gpt2 [the preset's]")
      ->check(whole_number(1));
  app.add_option("--heads", options.block.heads, "block [8], gpt2 [the preset's]")
      ->check(whole_number(1));
  app.add_option("--kv-heads", options.block.kv_heads, "block: of keys and values [as --heads]")
      ->check(whole_number(1));
  app.add_option("--d-ff", options.block.d_ff, "block [256]")->check(whole_number(1));
  app.add_option("--seq", options.seq, "block [32], gpt2 [64]: positions of a sequence")
      ->check(whole_number(1));
  app.add_flag("--causal", options.block.causal, "block: a position sees itself and those before");
  add_choice(app, "--activation", options.block.activation, activation_names, "block [relu]");
  const auto dropout = [&options](const double& p) {
    options.block.attention_dropout = options.block.hidden_dropout = p;
    options.gpt2.dropout = options.vgg16.dropout = p;
  };
  app.add_option_function<double>("--dropout", dropout, "block, gpt2: probability [0]; vgg16 [0.5]")
      ->check(number(0, 1));
  app.add_flag("--recompute", options.gpt2.recompute,
               "gpt2: backward computes what blocks would keep once more");

  app.add_option("--text", options.text, "gpt2: files in UTF-8 to train on; scripts/data text")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("FILE ...");
  app.add_option("--preset", options.preset, "gpt2: tiny, mini or small [tiny]");
  app.add_option("--vocabulary", options.gpt2.vocabulary, "gpt2: tokens [512]")
      ->check(whole_number(2));
  app.add_option("--validation", options.validation,
                 "gpt2: share of the text that is not trained on [0.1]")
      ->check(number(0, 1));
  app.add_option("--validation-samples", options.validation_samples,
                 "samples that are not trained on, to evaluate after each epoch [64; block: 8; "
                 "vgg16: 256]")
      ->check(whole_number(1));
  app.add_option("--write", options.writes, "gpt2: tokens that it writes at the end [40]")
      ->check(whole_number(0));
  app.add_option("--prompt", options.prompt, "gpt2: the text before these");
  app.add_option("--temperature", options.temperature, "gpt2: of these; 0: the most probable [0.8]")
      ->check(number(0, HUGE_VAL));

  app.add_option("--images", options.images,
                 "vgg16: a folder of CIFAR-10's six binary files; scripts/data images")
      ->type_name("FOLDER");
  app.add_option("--width", options.vgg16.width,
                 "vgg16: a factor of all channels, a multiple of 1/64 [1]")
      ->check(number(0, 17));

  app.add_option("--pooled", options.vgg16.pooled,
                 "vgg16: rows and columns that the classifier takes; 7: its weights have "
                 "torchvision's shapes [1]")
      ->check(whole_number(1, 64));
  app.add_option("--load", options.load,
                 "gpt2, vgg16: weights to begin with, as safetensors with Hugging Face's or "
                 "torchvision's names")
      ->type_name("FILE");
  app.add_option("--save", options.save, "gpt2, vgg16: likewise, written at the end")
      ->type_name("FILE");

  app.add_option("--samples", options.samples,
                 "points [256], sequences [8; gpt2: all], images [all]")
      ->check(whole_number(1));
  app.add_option("--batch-size", options.batch_size, "samples of a step [all; gpt2: 8; vgg16: 64]")
      ->check(whole_number(1));
  app.add_option("--micro-batches", options.micro_batches,
                 "slices of a batch whose gradients are added [1]")
      ->check(whole_number(1));
  app.add_option("--epochs", options.epochs, "passes over all samples [20; gpt2, vgg16: 1]")
      ->check(whole_number(1));
  app.add_option("--steps", options.steps, "at most, in all epochs")->check(whole_number(1));
  add_choice(app, "--optimizer", options.optimizer, optimizers,
             "momentum: SGD with momentum of 0.9 [sgd; gpt2: adamw; vgg16: momentum]");
  app.add_option("--lr", options.learning_rate, "learning rate [0.1; momentum 0.01; adamw 0.001]")
      ->check(number(0, HUGE_VAL));
  app.add_option("--warmup", options.warmup, "steps in which the learning rate rises [0]")
      ->check(whole_number(0));
  app.add_option("--least-lr", options.least_rate,
                 "the learning rate falls to it along a cosine [it stays]")
      ->check(number(0, HUGE_VAL));
  app.add_option("--clip", options.clip, "largest norm of all gradients together [any]")
      ->check(number(0, HUGE_VAL));
  app.add_option("--weight-decay", options.weight_decay, "of adamw [0.01] and momentum [0]")
      ->check(number(0, HUGE_VAL));
  app.add_option("--seed", options.seed, "of weights, data and dropout [1]")
      ->check(whole_number(0, INT64_MAX));

  app.add_option("--checkpoint", options.checkpoint,
                 "a file of all that training goes on from, written anew after each epoch")
      ->type_name("FILE");
  app.add_option("--checkpoint-steps", options.checkpoint_steps, "and after so many steps")
      ->check(whole_number(1));
  app.add_option("--resume", options.resume, "goes on from a checkpoint, on this mesh or another")
      ->type_name("FILE");
  const auto check_all = [&options](std::int64_t) {
    options.check_output = options.check_weights = options.check_gradients = true;
  };
  app.add_flag_function("--check", check_all,
                        "train on one rank beside it, and say how far losses, outputs, gradients "
                        "and weights of the two are apart");
  app.add_flag("--check-output", options.check_output, "the same of losses and outputs only");
  app.add_flag("--check-weights", options.check_weights, "the same of weights only");
  app.add_option(
         "--tolerance", options.tolerance,
         "of what is checked, relative to the largest element [f32 1e-5, f64 1e-12, bf16 1.6e-2]")
      ->check(number(0, HUGE_VAL));
  app.add_flag(
      "--budget", options.budget,
      "block: only say what each rank sends in a step, and by which algorithms; not of fsdp");
  // Answered by analyze(), which has options of its own.
  app.add_flag("--analyze")
      ->description("only calculate what ranks hold and send: baton-train --analyze --help");
  app.add_flag("--json", options.json, "one JSON object at the end, for scripts/plot");
}

void complete(const CLI::App& app, TrainOptions& options) {
  const auto expect = [&](bool holds, std::initializer_list<const char*> names,
                          std::string_view expected, std::string_view found) {
    for (const char* name : names) {
      if (!holds && app.count(name) > 0)
        refuse(fmt::format("{}: expected {}, found {}", name, expected, found));
    }
  };
  const std::string_view model = name(options.model);
  expect(options.model == ModelKind::mlp, {"--hidden", "--noise"}, "--model mlp", model);
  const bool block = options.model == ModelKind::block, gpt2 = options.model == ModelKind::gpt2;
  expect(block, {"--kv-heads", "--d-ff", "--causal", "--activation"}, "--model block", model);
  const bool vgg16 = options.model == ModelKind::vgg16;
  expect(block || gpt2, {"--layers", "--d-model", "--heads", "--seq"}, "--model block or gpt2",
         model);
  expect(block || gpt2 || vgg16, {"--dropout"}, "--model block, gpt2 or vgg16", model);
  expect(gpt2,
         {"--recompute", "--text", "--preset", "--vocabulary", "--validation", "--write",
          "--prompt", "--temperature"},
         "--model gpt2", model);
  expect(gpt2 || vgg16, {"--load", "--save"}, "--model gpt2 or vgg16", model);
  expect(vgg16, {"--images", "--width", "--pooled"}, "--model vgg16", model);
  const bool samples = options.parallel == Parallel::dp || options.parallel == Parallel::fsdp;
  const std::string_view parallel = name(options.parallel);
  const bool layers = options.parallel == Parallel::pp || options.parallel == Parallel::mp;
  expect(samples || layers || options.parallel == Parallel::tp_sp, {"--tp"},
         "--parallel dp, fsdp, tp-sp, pp or mp", parallel);
  expect(samples || layers, {"--sp"}, "--parallel dp, fsdp, pp or mp", parallel);
  expect(samples, {"--pp"}, "--parallel dp or fsdp", parallel);
  expect(layers || options.pp > 1, {"--schedule", "--stages-per-rank", "--cuts", "--split"},
         "--parallel pp or mp, or --pp of at least 2", parallel);
  expect(options.cuts.empty(), {"--split"}, "no --cuts", "them");
  expect(options.parallel == Parallel::dp, {"--no-overlap"}, "--parallel dp", parallel);
  expect(options.parallel == Parallel::fsdp, {"--stage"}, "--parallel fsdp", parallel);
  const auto given = [&](const char* option) { return app.count(option) > 0; };
  if (options.pipelined() && !given("--micro-batches")) options.micro_batches = 0;
  if (!given("--optimizer"))
    options.optimizer = gpt2    ? OptimizerKind::adamw
                        : vgg16 ? OptimizerKind::momentum
                                : OptimizerKind::sgd;
  expect(options.optimizer != OptimizerKind::sgd, {"--weight-decay"},
         "--optimizer adamw or momentum", name(options.optimizer));
  if (!given("--weight-decay") && options.optimizer != OptimizerKind::adamw)
    options.weight_decay = 0;
  expect(options.checks(), {"--tolerance"}, "--check, --check-output or --check-weights", "none");
  expect(!options.checkpoint.empty(), {"--checkpoint-steps"}, "--checkpoint", "none");
  expect(options.resume.empty(), {"--load"}, "no --resume", "it");
  expect(options.emulated_gflops > 0, {"--emulate-optimizer-ns"}, "--emulate-gflops", "none");
  expect(options.emulated_gflops == 0,
         {"--check", "--check-output", "--check-weights", "--checkpoint", "--resume", "--save",
          "--clip", "--validation-samples", "--write", "--prompt", "--temperature", "--split"},
         "no --emulate-gflops, which computes nothing", "it");
  if ((gpt2 || vgg16) && !given("--epochs")) options.epochs = 1;
  if ((gpt2 || vgg16) && !given("--batch-size")) options.batch_size = gpt2 ? 8 : 64;
  if (!given("--validation-samples")) {
    if (vgg16) options.validation_samples = 256;
    if (block) options.validation_samples = 8;
  }
  if (vgg16 && options.images.empty())
    refuse("--model vgg16: expected --images FOLDER, found none; scripts/data images makes one");
  if (!gpt2) return;
  if (options.text.empty())
    refuse("--model gpt2: expected --text FILE, found none; scripts/data text makes one");
  if (options.prompt.empty()) refuse("--prompt: expected some text, found none");
  if (!given("--seq")) options.seq = 64;
  const Gpt2Config preset = gpt2_preset(options.preset);
  Gpt2Config& config = options.gpt2;
  config.context = options.seq;
  config.layers = given("--layers") ? options.layers : preset.layers;
  config.heads = given("--heads") ? options.block.heads : preset.heads;
  config.d_model = given("--d-model") ? options.block.d_model : preset.d_model;
  if (!given("--vocabulary")) config.vocabulary = 512;
  if (!given("--dropout")) config.dropout = 0;
}

namespace {

/// Makes the schedule of a pipeline.
void settle_pipeline(TrainOptions& options) {
  const int p = along(options, Axis::pp);
  const auto expect_stages = [&](bool given, const char* option) {
    if (p == 1 && given)
      refuse(fmt::format("{}: expected 2 ranks or more along pp, found 1", option));
  };
  expect_stages(!options.schedule.empty(), "--schedule");
  expect_stages(options.stages_per_rank > 1, "--stages-per-rank");
  expect_stages(!options.cuts.empty(), "--cuts");
  expect_stages(options.split != Split::parameters, "--split");
  if (options.schedule.empty())
    options.schedule = options.parallel == Parallel::mp ? "naive" : "1f1b";
  if (options.schedule.ends_with(".csv")) {
    options.pipeline = parse_pipeline(file_contents(options.schedule), options.schedule);
    const int found = options.pipeline.micro_batches;
    if (options.micro_batches > 0 && options.micro_batches != found) {
      refuse(fmt::format("--micro-batches: expected the {} of {}, found {}", found,
                         options.schedule, options.micro_batches));
    }
    options.micro_batches = found;
    if (options.pipeline.size() != p) {
      refuse(fmt::format("{}: expected {} ranks along pp, found {}", options.schedule, p,
                         options.pipeline.size()));
    }
  } else {
    if (options.micro_batches == 0) {
      const std::int64_t samples = options.batch_size / along(options, Axis::dp);
      const int most = options.parallel == Parallel::mp ? 1 : 2 * p;
      options.micro_batches = static_cast<int>(std::clamp<std::int64_t>(samples, 1, most));
    }
    options.pipeline =
        pipeline_schedule(options.schedule, {p, options.micro_batches, options.stages_per_rank});
  }
  expect_right(options.pipeline);
  if (!options.cuts.empty() &&
      static_cast<int>(options.cuts.size()) + 1 != options.pipeline.stages) {
    refuse(fmt::format("--cuts: expected the first layers of {} stages but the first, found {}",
                       options.pipeline.stages, options.cuts.size()));
  }
}

}  // namespace

void settle(TrainOptions& options, int launched) {
  const bool alone = options.parallel == Parallel::none;
  if (launched > 0 && options.ranks > 0 && options.ranks != launched) {
    refuse(fmt::format("--ranks: expected the {} ranks of the launcher, found {}", launched,
                       options.ranks));
  }
  if (options.budget && options.model != ModelKind::block)
    refuse(fmt::format("--budget: expected --model block, found {}", name(options.model)));
  if (options.budget && options.pipelined()) refuse("--budget: expected no pipeline, found one");
  if (options.budget && options.parallel == Parallel::fsdp)
    refuse(
        "--budget: expected no --parallel fsdp, whose messages baton-train --analyze adds up, "
        "found it");
  if (options.budget && options.json) refuse("--budget: expected no --json, found it");
  if (options.budget && options.cores_per_rank > 0)
    refuse("--budget: expected no --cores-per-rank, found it");
  if (launched > 0) options.ranks = launched;
  if (options.tp == 0) options.tp = options.parallel == Parallel::tp_sp ? 2 : 1;
  if (options.ranks == 0)
    options.ranks = alone ? 1 : 2 * options.tp * options.sp * std::max(options.pp, 1);
  if (options.model == ModelKind::mlp || options.model == ModelKind::block) {
    if (options.samples == 0) options.samples = options.model == ModelKind::mlp ? 256 : 8;
    options.batch_size = std::min(options.batch(), options.samples);
  }
  if (alone && options.ranks != 1)
    refuse(fmt::format("--parallel none: expected 1 rank, found {}", options.ranks));
  const bool cuts_positions =
      options.parallel == Parallel::sp || options.parallel == Parallel::tp_sp || options.sp > 1;
  const auto expect_parallel = [&](std::string_view expected, std::string_view why, bool refused) {
    if (!refused) return;
    refuse(fmt::format(
        "--model {}: expected {}, for {}, found {}", name(options.model), expected, why,
        options.sequence_parallel          ? "--sequence-parallel"
        : options.tp > 1 || options.sp > 1 ? fmt::format("--tp {} --sp {}", options.tp, options.sp)
                                           : std::string(name(options.parallel))));
  };
  const bool cuts_weights = options.parallel == Parallel::tp || options.tp > 1;
  if (options.model == ModelKind::mlp) {
    expect_parallel("none, dp, fsdp, tp, pp or mp", "it has no positions",
                    cuts_positions || options.sequence_parallel);
  }
  if (options.model == ModelKind::vgg16) {
    expect_parallel("none, dp, fsdp, pp or mp", "its layers are not cut",
                    cuts_positions || cuts_weights || options.sequence_parallel);
  }
  if (options.sequence_parallel && options.parallel != Parallel::tp &&
      options.parallel != Parallel::tp_sp && options.tp == 1) {
    refuse(fmt::format("--sequence-parallel: expected --parallel tp or tp-sp, or --tp, found {}",
                       name(options.parallel)));
  }
  const int pp = std::max(options.pp, 1);
  expect_multiple("--ranks", options.ranks, options.tp * options.sp * pp,
                  pp > 1           ? "--tp x --sp x --pp"
                  : options.sp > 1 ? "--tp x --sp"
                                   : "--tp");
  if (options.pipelined()) settle_pipeline(options);
  expect_divisible(options);
}

}  // namespace baton::transformer::program
