#include "report.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "../pipeline/verify.hpp"

namespace baton::transformer::program {
namespace {

using Json = nlohmann::ordered_json;

/// The differences that were asked for, each with its name.
std::vector<std::pair<std::string, Difference>> checked(const TrainOptions& options,
                                                        const Outcome& outcome) {
  const Differences& d = outcome.differences;
  std::vector<std::pair<std::string, Difference>> all;
  if (options.check_output) all = {{"losses", d.loss}, {"outputs", d.output}};
  if (options.check_gradients) all.emplace_back("gradients", d.gradients);
  if (options.check_weights) all.emplace_back("weights", d.weights);
  return all;
}

std::string_view item(const TrainOptions& options) {
  return options.model == ModelKind::gpt2 ? "tokens" : "samples";
}

std::string form(const TrainOptions& options) {
  std::string mesh;
  for (const auto& [axis, size] : options.axes())
    mesh += fmt::format("{}{} {}", mesh.empty() ? "" : " x ", name(axis), size);
  if (mesh.empty()) return "1 rank";
  if (options.parallel == Parallel::fsdp)
    mesh = fmt::format("fsdp, stage {}, {}", static_cast<int>(options.sharding), mesh);
  return mesh + " ranks" + (options.sequence_parallel ? ", sequence parallel," : "");
}

/// Without characters that a terminal would obey.
std::string on_one_line(std::string text) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; };
  std::replace_if(text.begin(), text.end(), control, ' ');
  return text;
}

/// Bytes as megabytes.
std::string megabytes(std::int64_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / 1e6);
}

void print_memory(const Outcome& outcome) {
  std::string parts;
  for (int purpose = 0; purpose < purpose_count; ++purpose) {
    parts += fmt::format("{}{} {}", purpose == 0 ? "" : ", ", name(static_cast<Purpose>(purpose)),
                         megabytes(outcome.held[static_cast<std::size_t>(purpose)].most));
  }
  fmt::print("# in training, a rank held at most {} MB at once; by purpose, each at most: {}\n",
             megabytes(outcome.held[purpose_count].most), parts);
}

/// "0-3,8"
std::string ranges(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

void print_cores(const Pinning& pinning) {
  constexpr std::size_t shown = 16;
  std::string text;
  for (std::size_t rank = 0; rank < std::min(shown, pinning.cores.size()); ++rank)
    text += fmt::format("{}{}", rank == 0 ? "" : " | ", ranges(pinning.cores[rank]));
  fmt::print("# cores of ranks: {}{}{}\n", text, pinning.cores.size() > shown ? " | ..." : "",
             pinning.shared ? "; round-robin, for there are too few" : "");
}

/// The bubble that a schedule has at unit costs.
double bubble_of(const TrainOptions& options) { return verify(options.pipeline).cost.bubble; }

void print_pipeline(const TrainOptions& options) {
  const PipelineSchedule& pipeline = options.pipeline;
  fmt::print("# pipeline {}: {} stages, {} micro-batches, a bubble of {:.3g} at unit costs\n",
             pipeline.name, pipeline.stages, pipeline.micro_batches, bubble_of(options));
}

void print_stages(const std::vector<Range>& stages) {
  std::string text;
  for (const Range& layers : stages) {
    text += fmt::format("{}{}", text.empty() ? "" : " | ", layers.begin);
    if (layers.size() > 1) text += fmt::format("-{}", layers.end - 1);
  }
  fmt::print("# layers of stages: {}\n", text);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

bool within(const Outcome& outcome, const TrainOptions& options) {
  return outcome.differences.largest() <= options.allowed();
}

std::string sizes(const TrainOptions& options) {
  if (options.model == ModelKind::mlp) {
    return fmt::format("mlp 2-{}-1 on {} points of two moons, noise {}", options.hidden,
                       options.samples, options.noise);
  }
  if (options.model == ModelKind::gpt2) {
    const Gpt2Config& gpt2 = options.gpt2;
    return fmt::format(
        "gpt2 of {} layers, d_model {}, {} heads, {} tokens: {} parameters; batches "
        "of {} sequences of {}",
        gpt2.layers, gpt2.d_model, gpt2.heads, gpt2.vocabulary, gpt2.parameters(), options.batch(),
        options.seq);
  }
  if (options.model == ModelKind::vgg16) {
    return fmt::format("vgg16 of width {}: {} parameters; batches of {} images",
                       options.vgg16.width, options.vgg16.parameters(), options.batch());
  }
  const BlockConfig& block = options.block;
  return fmt::format("{} block{} of d_model {}, {} heads, d_ff {} on {} sequences of {}",
                     options.layers, options.layers == 1 ? "" : "s", block.d_model, block.heads,
                     block.d_ff, options.samples, options.seq);
}

}  // namespace

Report::Report(const TrainOptions& options, std::string transport)
    : options_(options), transport_(std::move(transport)), terminal_(isatty(STDERR_FILENO) != 0) {}

void Report::head() {
  if (headed_ || options_.json) return;
  headed_ = true;
  fmt::print("# {}\n", sizes(options_));
  fmt::print("# {} of {}; {}, {}, learning rate {}, seed {}\n", form(options_), transport_,
             name(options_.dtype), name(options_.optimizer), options_.rate(), options_.seed);
  if (options_.pipelined()) print_pipeline(options_);
  if (pinning_) print_cores(*pinning_);
  if (options_.emulated_gflops > 0) {
    fmt::print("# computations are emulated, at {} Gflop/s: losses mean nothing\n",
               options_.emulated_gflops);
  }
  fmt::print("{:>5}  {:<22}", "epoch", "loss");
  if (options_.checks()) fmt::print("  {:<22}  {}", "on one rank", "relative difference");
  fmt::print("  {:>10}", "validation");
  if (options_.model == ModelKind::vgg16) fmt::print("  {:>8}", "accuracy");
  fmt::print("  {:>9}\n", fmt::format("{}/s", item(options_)));
  std::fflush(stdout);
}

void Report::step(const Progress& progress) {
  head();
  if (!terminal_) return;
  fmt::print(stderr, "\r\033[K[{}/{}] epoch {} of {}, loss {:.4g}, {:.0f} {}/s, {:.0f} s left",
             progress.done, progress.of, progress.epoch, options_.epochs, progress.loss,
             progress.items_per_second, item(options_), progress.seconds_left);
  std::fflush(stderr);
  shown_ = true;
}

void Report::epoch(const Outcome& outcome) {
  if (options_.json) return;
  clear();
  const double loss = outcome.losses.back();
  const int digits = options_.dtype == Datatype::f64 ? 16 : 9;
  const auto epoch = static_cast<std::size_t>(outcome.first_epoch) + outcome.losses.size() - 1;
  fmt::print("{:>5}  {:<22.{}g}", epoch, loss, digits);
  if (options_.checks()) {
    const double reference = outcome.reference_losses.back();
    fmt::print("  {:<22.{}g}  {:.1e}", reference, digits,
               loss == reference ? 0 : std::abs(loss - reference) / std::abs(reference));
  }
  if (!outcome.validation.empty()) {
    fmt::print("{}  {:>10.5g}", options_.checks() ? "            " : "", outcome.validation.back());
    if (!outcome.accuracy.empty()) fmt::print("  {:>7.2f}%", 100 * outcome.accuracy.back());
    fmt::print("  {:>9.{}f}", static_cast<double>(outcome.items.back()) / outcome.epochs.back().all,
               options_.model == ModelKind::vgg16 ? 1 : 0);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

bool Report::finish(const Outcome& outcome) {
  head();
  clear();
  const bool good = outcome.stopped.empty() && within(outcome, options_);
  if (options_.json) {
    json(outcome);
  } else if (options_.checks() && outcome.stopped.empty()) {
    fmt::print("# largest relative difference from one rank, allowed {:.1e}:\n",
               options_.allowed());
    for (const auto& [what, difference] : checked(options_, outcome)) {
      if (options_.parallel == Parallel::fsdp && what == "gradients") continue;
      fmt::print("#   {:<9}  {:.1e}{}\n", what, difference.relative,
                 difference.where.empty() ? "" : "  (" + difference.where + ")");
    }
    fmt::print("# {}\n", good ? "equal within the tolerance" : "NOT equal within the tolerance");
  }
  const bool whole = options_.model == ModelKind::gpt2 || options_.model == ModelKind::vgg16;
  if (!options_.json && whole && outcome.stopped.empty()) print_memory(outcome);
  if (!options_.json && outcome.bubble && outcome.stopped.empty()) {
    print_stages(outcome.stages.layers);
    fmt::print("# in forward and backward, ranks waited {:.3g} of the time\n", *outcome.bubble);
  }
  if (!options_.json && options_.emulated_gflops > 0 && !outcome.step_seconds.empty())
    fmt::print("# a step took {:.4g} ms (median)\n", 1e3 * median(outcome.step_seconds));
  if (!options_.json && !outcome.written.empty())
    fmt::print("# it writes: {}\n", on_one_line(outcome.written));
  if (!outcome.stopped.empty()) fmt::print(stderr, "baton-train: {}\n", outcome.stopped);
  return good;
}

void Report::json(const Outcome& outcome) const {
  Json mesh = Json::object();
  for (const auto& [axis, size] : options_.axes()) mesh[std::string(name(axis))] = size;
  Json json = {{"model", name(options_.model)},
               {"sizes", sizes(options_)},
               {"parallel", name(options_.parallel)},
               {"sequence_parallel", options_.sequence_parallel},
               {"ranks", options_.ranks},
               {"mesh", mesh},
               {"transport", transport_},
               {"dtype", name(options_.dtype)},
               {"optimizer", name(options_.optimizer)},
               {"learning_rate", options_.rate()},
               {"seed", options_.seed},
               {"samples", options_.samples},
               {"batch_size", options_.batch()},
               {"micro_batches", options_.micro_batches},
               {"epochs", options_.epochs},
               {"loss", outcome.losses},
               {"seconds", outcome.seconds()}};
  if (options_.parallel == Parallel::fsdp) json["stage"] = static_cast<int>(options_.sharding);
  if (options_.pipelined()) {
    const PipelineProof proof = verify(options_.pipeline);
    json["pipeline"] = {{"schedule", options_.pipeline.name},
                        {"stages", options_.pipeline.stages},
                        {"unit_bubble", proof.cost.bubble},
                        {"peak", proof.cost.peak},
                        {"messages", proof.cost.messages}};
    if (outcome.bubble) json["pipeline"]["bubble"] = *outcome.bubble;
    auto& first = json["pipeline"]["first_layers"] = Json::array();
    for (const Range& layers : outcome.stages.layers) first.push_back(layers.begin);
    if (!outcome.stages.seconds.empty()) json["pipeline"]["layer_seconds"] = outcome.stages.seconds;
  }
  if (outcome.first_epoch > 1) json["first_epoch"] = outcome.first_epoch;
  if (!outcome.validation.empty()) json["validation_loss"] = outcome.validation;
  if (!outcome.accuracy.empty()) json["validation_accuracy"] = outcome.accuracy;
  Json seconds = Json::array();
  for (const EpochSeconds& epoch : outcome.epochs) {
    seconds.push_back({{"all", epoch.all},
                       {"computation", epoch.computation()},
                       {"communication", epoch.communication},
                       {"optimizer", epoch.optimizer}});
  }
  json["epoch_seconds"] = seconds;
  json["step_seconds"] = outcome.step_seconds;
  if (options_.emulated_gflops > 0) {
    json["emulated"] = {{"gflops", options_.emulated_gflops},
                        {"optimizer_ns", options_.emulated_optimizer_ns}};
  }
  json[std::string(item(options_)) + "_per_epoch"] =
      outcome.items.empty() ? 0 : std::ranges::max(outcome.items);
  json[std::string(item(options_)) + "_per_second"] = outcome.items_per_second();
  Json held = Json::object();
  for (int purpose = 0; purpose <= purpose_count; ++purpose) {
    const Held& bytes = outcome.held[static_cast<std::size_t>(purpose)];
    const std::string_view what =
        purpose < purpose_count ? name(static_cast<Purpose>(purpose)) : "all";
    held[std::string(what)] = {{"now", bytes.now}, {"most", bytes.most}};
  }
  json["held_bytes"] = held;
  json["last_step_sent"] = {{"bytes", outcome.sent.bytes}, {"messages", outcome.sent.messages}};
  if (!outcome.written.empty()) json["written"] = outcome.written;
  if (pinning_) {
    json["cores"] = pinning_->cores;
    json["cores_shared"] = pinning_->shared;
  }
  if (options_.checks()) {
    json["reference_loss"] = outcome.reference_losses;
    json["check"] = {{"tolerance", options_.allowed()},
                     {"match", outcome.stopped.empty() && within(outcome, options_)}};
    for (const auto& [what, difference] : checked(options_, outcome))
      json["check"][what == "losses" ? "loss" : what] = {{"relative", difference.relative},
                                                         {"where", difference.where}};
  }
  if (!outcome.stopped.empty()) json["stopped"] = outcome.stopped;
  fmt::print("{}\n", json.dump(1, ' ', false, Json::error_handler_t::replace));
}

void Report::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace baton::transformer::program
