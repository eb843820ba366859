#include "analyze.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "../models/gpt2.hpp"
#include "../training/analysis.hpp"
#include "values.hpp"

namespace baton::transformer::program {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* description =
    "Calculates the bytes that each rank holds and sends in a step of training, and the time of\n"
    "what it sends. Nothing is trained.";
constexpr const char* footer =
    "Held: parameters, gradients, and the optimizer's state with f32 masters of 16-bit "
    "parameters.\n"
    "Activations, which --batch-size shows, gathered layers and buffers of messages come on top.\n"
    "Sent: by ring collectives, or over the boundaries of a pipeline of as many stages as ranks.\n"
    "Times are bytes / bandwidth: no latency, nothing hidden behind computation.\n"
    "\n"
    "Examples:\n"
    "  baton-train --analyze --parameters 7.5e9 --ranks 64 --dtype f16        ZeRO's figure 1\n"
    "  baton-train --analyze --parameters 1e10 --ranks 8 --dtype f16 --bandwidth 100\n"
    "  baton-train --analyze --model gpt2 --preset mini --ranks 4 --batch-size 8 --json";

/// Of the optimizer, for each parameter.
const Names<int> states = {{"sgd", 0}, {"momentum", 1}, {"adamw", 2}};
const Names<Datatype> dtypes = {{"f32", Datatype::f32},
                                {"f64", Datatype::f64},
                                {"bf16", Datatype::bf16},
                                {"f16", Datatype::f16}};
const Names<bool> models = {{"gpt2", true}};

struct AnalyzeOptions {
  bool gpt2 = false;
  std::string preset = "small";
  std::int64_t parameters = 0;
  int states = 2;
  Datatype dtype = Datatype::f32, gradient_dtype = Datatype::f32;
  int ranks = 0, micro_batches = 1;
  std::optional<double> bandwidth;  ///< Gbit/s
  std::int64_t batch = 0, seq = 0, d_model = 0, layers = 0, heads = 0;
  std::int64_t vocabulary = 0, context = 0;  ///< 0: the preset's
  bool json = false;

  Gpt2Config config() const {
    Gpt2Config config = gpt2_preset(preset);
    if (vocabulary > 0) config.vocabulary = vocabulary;
    if (context > 0) config.context = context;
    return config;
  }
};

/// "7.5e9", exactly.
CLI::Validator parameter_count() {
  const auto check = [](std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is = error == std::errc() && end == text.data() + text.size();
    if (!is || value < 1 || value > 1e13 || value != std::floor(value)) {
      return fmt::format(
          "expected a whole number from 1 to 1e13, 7500000000 or 7.5e9 for example, found \"{}\"",
          text);
    }
    text = fmt::format("{}", static_cast<std::int64_t>(value));
    return std::string();
  };
  return CLI::Validator(check, "");
}

void add_options(CLI::App& app, AnalyzeOptions& options) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_flag("--analyze")->description("this calculator");
  app.add_option("--parameters", options.parameters, "of the model, 7.5e9 for example")
      ->transform(parameter_count())
      ->type_name("NUMBER");
  add_choice(app, "--model", options.gpt2, models, "instead of --parameters");
  app.add_option("--preset", options.preset, "gpt2: tiny, mini or small [small]");
  app.add_option("--vocabulary", options.vocabulary, "gpt2: tokens [50257]")
      ->check(whole_number(2, INT32_MAX));
  app.add_option("--context", options.context, "gpt2: most positions of a sample [1024]")
      ->check(whole_number(1, INT32_MAX));
  app.add_option("--ranks", options.ranks, "that share the work")
      ->check(whole_number(1, 1'000'000));
  add_choice(app, "--optimizer", options.states, states, "[adamw]");
  add_choice(app, "--dtype", options.dtype, dtypes, "of parameters and activations [f32]");
  add_choice(app, "--gradient-dtype", options.gradient_dtype, dtypes, "[as --dtype]");
  app.add_option("--bandwidth", options.bandwidth, "of each rank, in each direction, in Gbit/s")
      ->check(number(1e-6, HUGE_VAL));
  app.add_option("--batch-size", options.batch, "samples of a step, for activations and boundaries")
      ->check(whole_number(1));
  app.add_option("--micro-batches", options.micro_batches,
                 "of a step; stages 2 and 3 communicate in each [1]")
      ->check(whole_number(1, 10'000));
  app.add_option("--seq", options.seq, "positions of a sample [gpt2: all]")->check(whole_number(1));
  app.add_option("--d-model", options.d_model, "elements of a position")->check(whole_number(1));
  app.add_option("--layers", options.layers, "blocks like GPT-2's, for their activations")
      ->check(whole_number(1, 1000));
  app.add_option("--heads", options.heads, "of each block")->check(whole_number(1));
  app.add_flag("--json", options.json, "one JSON object");
}

/// Fills in what was left open. Throws Error(invalid_argument) where options do not fit.
void settle(const CLI::App& app, AnalyzeOptions& options) {
  const auto given = [&](const char* option) { return app.count(option) > 0; };
  const auto expect = [&](bool holds, std::initializer_list<const char*> names,
                          std::string_view expected, std::string_view found) {
    for (const char* name : names)
      if (!holds && given(name))
        refuse(fmt::format("{}: expected {}, found {}", name, expected, found));
  };
  expect(!options.gpt2, {"--parameters", "--d-model", "--layers", "--heads"}, "no --model", "gpt2");
  expect(options.gpt2, {"--preset", "--vocabulary", "--context"}, "--model gpt2", "none");
  if (!options.gpt2 && !given("--parameters"))
    refuse("--parameters: expected a number of parameters, or --model gpt2, found neither");
  if (!given("--ranks")) refuse("--ranks: expected a number of ranks, found none");
  expect(given("--batch-size"), {"--seq", "--d-model", "--layers"}, "--batch-size", "none");
  expect(given("--heads"), {"--layers"}, "--heads with it", "none");
  expect(given("--layers"), {"--heads"}, "--layers with it", "none");
  if (!given("--gradient-dtype")) options.gradient_dtype = options.dtype;
  if (options.gpt2) {
    const Gpt2Config config = options.config();
    options.parameters = config.parameters();
    options.d_model = config.d_model, options.layers = config.layers;
    options.heads = config.heads;
    if (options.seq > config.context) {
      refuse(fmt::format("--seq: expected at most {} positions, found {}", config.context,
                         options.seq));
    }
    if (options.seq == 0) options.seq = config.context;
  }
  if (given("--batch-size") && (options.seq == 0 || options.d_model == 0)) {
    refuse(fmt::format("--batch-size: expected --seq and --d-model with it, found {}",
                       options.seq > 0       ? "--seq alone"
                       : options.d_model > 0 ? "--d-model alone"
                                             : "neither"));
  }
}

/// One line of a table: bytes by purpose, and their sum.
struct Row {
  std::string form;
  int stage = -1;  ///< of sharding; 0: none; -1: whatever is sharded
  std::vector<std::pair<const char*, std::int64_t>> parts;
  std::int64_t total = 0;
  std::string formula;
};

struct Tables {
  std::vector<Row> held, sent;
};

using Stage = std::optional<ShardingStage>;
constexpr std::pair<Stage, const char*> forms[] = {
    {std::nullopt, "all replicated"},
    {ShardingStage::optimizer, "optimizer sharded (stage 1)"},
    {ShardingStage::gradients, "and gradients (stage 2)"},
    {ShardingStage::parameters, "everything sharded (stage 3)"},
};

Row held_row(const AnalyzedModel& model, Stage stage) {
  const HeldBytes held = most_held_bytes(model, stage);
  const auto of = [&](std::int64_t bytes, ShardingStage divides) {
    return fmt::format("{} {}", bytes, stage >= divides ? "ceil(n/P)" : "n");
  };
  Row row;
  row.parts = {{"parameters", held.parameters},
               {"gradients", held.gradients},
               {"optimizer", held.optimizer}};
  row.total = held.total();
  row.formula = of(model.bytes.value, ShardingStage::parameters) + " + " +
                of(model.bytes.gradient, ShardingStage::gradients) + " + " +
                of(model.bytes.optimizer, ShardingStage::optimizer);
  return row;
}

Row sent_row(const AnalyzedModel& model, Stage stage) {
  const SentBytes sent = most_sent_bytes(model, stage);
  Row row;
  row.parts = {{"parameters", sent.parameters}, {"gradients", sent.gradients}};
  row.total = sent.total();
  if (!stage) {
    row.formula = fmt::format("2 (P-1)/P {} n: all_reduce", model.bytes.gradient);
    return row;
  }
  const auto times = [](int passes, std::int64_t bytes) {
    return passes == 1 ? fmt::format("{}", bytes) : fmt::format("{} * {}", passes, bytes);
  };
  const bool gathers_twice = stage >= ShardingStage::parameters;
  row.formula = fmt::format(
      "(P-1)/P ({} + {}) n: reduce_scatter, all_gather{}",
      times(stage >= ShardingStage::gradients ? model.micro_batches : 1, model.bytes.gradient),
      times(gathers_twice ? 2 * model.micro_batches : 1, model.bytes.value),
      gathers_twice ? " in forward and in backward" : "");
  return row;
}

/// What is divided by itself: the units of GPT-2, or the whole.
std::vector<std::int64_t> units_of(const AnalyzeOptions& options) {
  if (!options.gpt2) return {options.parameters};
  Gpt2Config config = options.config();
  const std::int64_t layers = std::exchange(config.layers, 0), embedding = config.parameters();
  std::vector<std::int64_t> units(static_cast<std::size_t>(layers),
                                  (options.parameters - embedding) / layers);
  units.push_back(embedding);
  return units;
}

/// Activations of the largest micro-batch of a rank: of its blocks, and of GPT-2's head.
std::vector<Row> kept_rows(const AnalyzeOptions& options, const ParameterBytes& bytes) {
  Gpt2Config config;
  if (options.gpt2) config = options.config();
  config.d_model = options.d_model, config.heads = options.heads;
  const std::int64_t parts = std::int64_t{options.ranks} * options.micro_batches;
  const Shape x{(options.batch + parts - 1) / parts, options.seq, options.d_model};
  const std::string samples = options.micro_batches == 1
                                  ? "ceil(b/P)"
                                  : fmt::format("ceil(b/(P * {}))", options.micro_batches);
  const std::int64_t wide = std::max<std::int64_t>(bytes.value, sizeof(float));
  std::vector<Row> rows(1);
  rows[0].form = "activations of blocks";
  rows[0].total = options.layers * block_kept_bytes(config.block(0), x, options.dtype);
  rows[0].formula = fmt::format("{} {} s ({} * 16 d + {} * {})", options.layers, samples,
                                bytes.value, wide, 4 + options.heads);
  if (!options.gpt2) return rows;
  Row& head = rows.emplace_back();
  head.form = "activations of the head";
  head.total = head_kept_bytes(config.vocabulary, x, options.dtype);
  head.formula =
      fmt::format("{} s ({} * (2 d + {}) + {} * 2)", samples, bytes.value, config.vocabulary, wide);
  return rows;
}

Tables calculate(const AnalyzeOptions& options) {
  const AnalyzedModel model{units_of(options),
                            parameter_bytes(options.dtype, options.gradient_dtype, options.states),
                            options.ranks, options.micro_batches};
  Tables tables;
  for (std::size_t number = 0; number < std::size(forms); ++number) {
    const auto& [stage, form] = forms[number];
    for (auto [table, row] : {std::pair(&tables.held, held_row(model, stage)),
                              std::pair(&tables.sent, sent_row(model, stage))}) {
      row.form = form;
      row.stage = static_cast<int>(number);
      table->push_back(row);
    }
  }
  if (options.batch == 0) return tables;
  if (options.layers > 0)
    for (const Row& row : kept_rows(options, model.bytes)) tables.held.push_back(row);
  const std::int64_t boundary =
      boundary_bytes({options.batch, options.seq, options.d_model}, options.dtype);
  const std::string formula = fmt::format("{} b s d", model.bytes.value);
  tables.sent.push_back({"one boundary, one way", -1, {}, boundary, formula});
  // Rank 1 has two boundaries, if any rank has.
  const std::int64_t most =
      pipeline_sent_bytes(boundary, options.ranks, std::min(1, options.ranks - 1));
  tables.sent.push_back({"pipeline",
                         -1,
                         {},
                         most,
                         fmt::format("{} * {}: forward to the next, backward to the one before",
                                     most / boundary, formula)});
  return tables;
}

double gigabytes(const Row& row) { return static_cast<double>(row.total) * 1e-9; }

void print(const AnalyzeOptions& options, const Tables& tables) {
  constexpr const char* line = "{:<28}  {:>14}  {:>14}  {:>14}  {:>15}  {:>10}  {}{}\n";
  fmt::print("# n = {} parameters of {}{}, gradients of {}, {}\n", options.parameters,
             name(options.dtype), options.gpt2 ? " (GPT-2 " + options.preset + ")" : "",
             name(options.gradient_dtype), name_in(states, options.states));
  fmt::print("# P = {} ranks{}; GB = 10^9 B; numbers are of the rank that has the most{}\n",
             options.ranks,
             options.bandwidth ? fmt::format(" of {} Gbit/s each way", *options.bandwidth) : "",
             options.gpt2 ? "; blocks and embedding are divided each by itself" : "");
  if (options.batch > 0)
    fmt::print("# [b, s, d] = [{}, {}, {}] activations of {}\n", options.batch, options.seq,
               options.d_model, name(options.dtype));
  const auto rows = [&](const char* title, const std::vector<Row>& table, bool sent) {
    const bool timed = sent && options.bandwidth;
    fmt::print(line, title, "parameters", "gradients", sent ? "" : "optimizer", "bytes", "GB",
               timed ? "   seconds  " : "", "formula in bytes");
    for (const Row& row : table) {
      const auto part = [&](std::size_t i) {
        return i < row.parts.size() ? fmt::format("{}", row.parts[i].second) : "";
      };
      fmt::print(
          line, row.form, part(0), part(1), part(2), row.total,
          fmt::format("{:.3f}", gigabytes(row)),
          timed ? fmt::format("{:>10.4g}  ", transfer_seconds(row.total, *options.bandwidth)) : "",
          row.formula);
    }
  };
  rows("held", tables.held, false);
  rows("sent in a step", tables.sent, true);
}

void print_json(const AnalyzeOptions& options, const Tables& tables) {
  const auto in_json = [&](const std::vector<Row>& table, bool sent) {
    Json rows = Json::array();
    for (const Row& row : table) {
      Json object = {{"form", row.form}};
      if (row.stage >= 0) object["stage"] = row.stage;
      for (const auto& [purpose, bytes] : row.parts) object[purpose] = bytes;
      object["bytes"] = row.total;
      object["GB"] = gigabytes(row);
      if (sent && options.bandwidth)
        object["seconds"] = transfer_seconds(row.total, *options.bandwidth);
      object["formula"] = row.formula;
      rows.push_back(object);
    }
    return rows;
  };
  Json json;
  if (options.gpt2) json["model"] = "gpt2", json["preset"] = options.preset;
  json["parameters"] = options.parameters;
  json["ranks"] = options.ranks;
  json["micro_batches"] = options.micro_batches;
  json["optimizer"] = name_in(states, options.states);
  json["dtype"] = name(options.dtype);
  json["gradient_dtype"] = name(options.gradient_dtype);
  if (options.bandwidth) json["gigabits_per_second"] = *options.bandwidth;
  if (options.batch > 0) json["activations"] = {options.batch, options.seq, options.d_model};
  json["held"] = in_json(tables.held, false);
  json["sent"] = in_json(tables.sent, true);
  fmt::print("{}\n", json.dump(1));
}

}  // namespace

int analyze(int argc, char** argv, bool speaks) {
  AnalyzeOptions options;
  CLI::App app(description, "baton-train --analyze");
  app.footer(std::string(footer));
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& answer) {
    if (speaks) app.exit(answer);
    return 0;
  }
  settle(app, options);
  const Tables tables = calculate(options);
  if (speaks) options.json ? print_json(options, tables) : print(options, tables);
  return 0;
}

}  // namespace baton::transformer::program
