#include "predict.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "../predict/join.hpp"
#include "../predict/predict.hpp"
#include "baton/error.hpp"
#include "baton/trace.hpp"
#include "diagrams/diagrams.hpp"
#include "values.hpp"

namespace baton::transformer::program {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* description =
    "Predicts the time and memory of a step of training on any number of ranks: computation,\n"
    "collectives, boundaries of a pipeline and the optimizer, simulated on a network. Nothing is\n"
    "trained.";
constexpr const char* footer =
    "Times of computations are given (--gflops, --block-forward-ms ...), or measured on this\n"
    "machine. Exposed is the time by which messages make the step longer; hidden the rest of what\n"
    "communication takes alone. transformer/predict/README.md says what is left out.\n"
    "\n"
    "Examples:\n"
    "  baton-train --predict --model gpt2 --preset mini --ranks 4 --batch-size 32 \\\n"
    "    --network virtual-cluster-1gbit\n"
    "  baton-train --predict --model gpt2 --layers 24 --heads 16 --d-model 1024 --tp 8 --pp 8 \\\n"
    "    --dp 16 --batch-size 512 --micro-batches 32 --gflops 50000 --network infiniband-100g\n"
    "  baton-train --predict --sweep --model gpt2 --ranks 64 --batch-size 64 --memory-limit 16 \\\n"
    "    --gflops 20000 --network infiniband-100g";

const Names<int> states = {{"sgd", 0}, {"momentum", 1}, {"adamw", 2}};
const Names<Datatype> dtypes = {
    {"f32", Datatype::f32}, {"f64", Datatype::f64}, {"bf16", Datatype::bf16}};
const Names<bool> models = {{"gpt2", true}};
const Names<ChoiceRule> rules = {{"library", ChoiceRule::library},
                                 {"network", ChoiceRule::network}};

constexpr int most_ranks = 65536;

struct PredictCommand {
  bool gpt2 = false;
  std::string preset = "small", network, output;
  std::vector<std::string> measured;
  std::int64_t layers = 0, heads = 0, d_model = 0, vocabulary = 0,
               context = 0;  ///< 0: the preset's
  StepModel model;
  StepLayout layout;
  int ranks = 0, stage = 0, best = 5;
  std::int64_t batch = 0, seq = 0;
  std::optional<double> gflops, block_forward, block_backward, head, optimizer_ns, memory_limit;
  int ranks_per_host = -1;  ///< -1: the network's
  double panel_us = 100;
  int at_once = 1;
  ChoiceRule choice = ChoiceRule::library;
  bool predicts = false, sweep = false, json = false, emulated = false;
};

void add_options(CLI::App& app, PredictCommand& its) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_flag("--predict", its.predicts, "this prediction");
  app.add_flag("--sweep", its.sweep, "compares all layouts of --ranks");
  add_choice(app, "--model", its.gpt2, models, "a language model");
  app.add_option("--preset", its.preset, "tiny, mini or small [small]");
  const CLI::Validator size = whole_number(1, 1 << 24);
  app.add_option("--layers", its.layers, "[the preset's]")->check(whole_number(1, 4096));
  app.add_option("--heads", its.heads, "[the preset's]")->check(size);
  app.add_option("--d-model", its.d_model, "[the preset's]")->check(size);
  app.add_option("--vocabulary", its.vocabulary, "[the preset's]")->check(size);
  app.add_option("--context", its.context, "[the preset's]")->check(size);
  app.add_option("--seq", its.seq, "positions of a sample [all]")->check(size);
  app.add_option("--batch-size", its.batch, "samples of a step, of all ranks [one for each of dp]")
      ->check(size);
  app.add_option("--micro-batches", its.layout.micro_batches, "of a step [1]")
      ->check(whole_number(1, 10'000));
  const CLI::Validator axis = whole_number(1, most_ranks);
  app.add_option("--ranks", its.ranks, "of all [dp x tp x sp x pp]")->check(axis);
  app.add_option("--dp", its.layout.dp, "ranks along axis dp [what --ranks leaves]")->check(axis);
  app.add_option("--tp", its.layout.tp, "[1]")->check(axis);
  app.add_option("--sp", its.layout.sp, "[1]")->check(axis);
  app.add_option("--pp", its.layout.pp, "[1]")->check(axis);
  app.add_option("--stage", its.stage,
                 "of sharding: 0 none, 1 optimizer, 2 gradients, 3 parameters [0]")
      ->check(whole_number(0, 3));
  app.add_flag("--sequence-parallel", its.layout.sequence_parallel, "along axis tp");
  app.add_option("--schedule", its.layout.schedule, "of the pipeline [1f1b]");
  app.add_option("--stages-per-rank", its.layout.stages_per_rank, "of interleaved_1f1b [1]")
      ->check(whole_number(1, 1024));
  add_choice(app, "--dtype", its.model.type, dtypes, "of parameters and activations [f32]");
  add_choice(app, "--optimizer", its.model.states, states, "[adamw]");
  app.add_option("--network", its.network, "by name or file, as of baton simulate")->required();
  app.add_option("--ranks-per-host", its.ranks_per_host, "0: all on one host [the network's]")
      ->check(whole_number(0, 65536));
  const CLI::Validator positive = number(1e-9, 1e15);
  app.add_option("--gflops", its.gflops, "10^9 operations a second of a rank [measured here]")
      ->check(positive);
  app.add_option("--block-forward-ms", its.block_forward, "of a block and micro-batch")
      ->check(number(0, 1e9));
  app.add_option("--block-backward-ms", its.block_backward, "of a block and micro-batch")
      ->check(number(0, 1e9));
  app.add_option("--head-ms", its.head, "of head and loss, forward; backward takes twice as long")
      ->check(number(0, 1e9));
  app.add_option("--optimizer-ns", its.optimizer_ns, "for a parameter [measured; 1 with --gflops]")
      ->check(number(0, 1e9));
  app.add_option("--panel-us", its.panel_us,
                 "messages progress so often beside computations; 0: never [100]")
      ->check(number(0, 1e9));
  app.add_flag("--emulated", its.emulated,
               "predicts a run with --emulate-gflops: its computations need no processor");
  app.add_option("--at-once", its.at_once,
                 "ranks that compute at the same time on this machine, while speed is measured [1]")
      ->check(whole_number(1, 1024));
  add_choice(app, "--choose-by", its.choice, rules,
             "algorithms of collectives: as the library chooses and cuts them without a tuning "
             "table, or the "
             "fastest on the network, in one piece [library on up to 64 ranks]");
  app.add_option("--cuts", its.layout.cuts, "first layers of stages but the first [by parameters]");
  app.add_option("--memory-limit", its.memory_limit, "of a rank, in GB (10^9 bytes), of --sweep")
      ->check(positive);
  app.add_option("--best", its.best, "so many layouts of --sweep are simulated [5]")
      ->check(whole_number(1, 1000));
  app.add_option("-o,--output", its.output, "draws the step: .svg, .html, .json ...")
      ->type_name("FILE");
  app.add_option(
         "--measured", its.measured,
         "recordings of a run in this layout (BATON_TRACE): its last step, item by item beside "
         "the prediction")
      ->type_name("FILE ...")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--json", its.json, "one JSON object");
}

void expect_model(const CLI::App& app, PredictCommand& its) {
  if (app.count("--model") == 0) refuse("--model: expected gpt2, found none");
  Gpt2Config config = gpt2_preset(its.preset);
  const auto set = [](std::int64_t& to, std::int64_t from) {
    if (from > 0) to = from;
  };
  set(config.layers, its.layers);
  set(config.heads, its.heads);
  set(config.d_model, its.d_model);
  set(config.vocabulary, its.vocabulary);
  set(config.context, its.context);
  if (config.d_model % config.heads != 0) {
    refuse(fmt::format("--heads: expected a divisor of the {} elements of a position, found {}",
                       config.d_model, config.heads));
  }
  its.model.gpt2 = config;
  its.model.seq = its.seq > 0 ? its.seq : config.context;
  if (its.model.seq > config.context) {
    refuse(fmt::format("--seq: expected at most {} positions, found {}", config.context,
                       its.model.seq));
  }
}

/// Whether no time is to be measured.
bool all_given(const PredictCommand& its) {
  return its.gflops || (its.block_forward && its.block_backward && its.head && its.optimizer_ns);
}

/// Fills in what was left open. Throws Error(invalid_argument) where options do not fit.
void settle(const CLI::App& app, PredictCommand& its) {
  expect_model(app, its);
  StepLayout& layout = its.layout;
  const auto settle_choice = [&] {
    constexpr int most = 64;  // the library's pieces are many messages
    if (app.count("--choose-by") == 0 && its.ranks > most) its.choice = ChoiceRule::network;
  };
  if (its.sweep) {
    if (its.ranks == 0) refuse("--sweep: expected --ranks with it, found none");
    for (const char* option : {"--dp", "--tp", "--sp", "--pp", "--stage", "--cuts", "-o"})
      if (app.count(option) > 0)
        refuse(fmt::format("{}: expected none with --sweep, which chooses it, found one", option));
    if (app.count("--measured") > 0) refuse("--measured: expected one layout, found --sweep");
    if (app.count("--at-once") > 0)
      refuse("--at-once: expected one layout, found --sweep, which measures one speed for all");
    for (const char* option : {"--block-forward-ms", "--block-backward-ms", "--head-ms"})
      if (app.count(option) > 0)
        refuse(
            fmt::format("{}: expected one layout, found --sweep, whose layouts differ in it; "
                        "--gflops gives the speed for all",
                        option));
    its.model.batch = its.batch > 0 ? its.batch : its.ranks;
    settle_choice();
    return;
  }
  if (app.count("--at-once") > 0 &&
      (all_given(its) || its.block_forward || its.block_backward || its.head))
    refuse("--at-once: expected times that are measured, found given ones");
  for (const char* option : {"--memory-limit", "--best"})
    if (app.count(option) > 0)
      refuse(fmt::format("{}: expected --sweep with it, found none", option));
  if (its.ranks > 0 && app.count("--dp") == 0) {
    layout.dp = 1;
    layout.dp = std::max(its.ranks / layout.ranks(), 1);
  }
  if (layout.ranks() > most_ranks)
    refuse(fmt::format("expected dp x tp x sp x pp of at most {}, found more", most_ranks));
  if (its.ranks == 0) its.ranks = layout.ranks();
  if (layout.ranks() != its.ranks) {
    refuse(fmt::format("--ranks: expected dp x tp x sp x pp = {}, found {}", layout.ranks(),
                       its.ranks));
  }
  settle_choice();
  if (its.stage > 0) layout.stage = static_cast<ShardingStage>(its.stage);
  its.model.batch = its.batch > 0 ? its.batch : std::int64_t{layout.dp} * layout.micro_batches;
}

ComputeRate rate_of(const PredictCommand& its) {
  if (its.gflops) return {*its.gflops, *its.gflops, its.optimizer_ns.value_or(1)};
  if (all_given(its)) return {1, 1, *its.optimizer_ns};
  ComputeRate rate = measured_rate(its.model);
  if (its.optimizer_ns) rate.optimizer_ns = *its.optimizer_ns;
  return rate;
}

/// Times of a layout: given ones, or those of a rate.
ComputeTimes times_of(const PredictCommand& its, const StepLayout& layout,
                      const ComputeRate& rate) {
  ComputeTimes times = times_at(its.model, layout, rate);
  const auto set = [](std::int64_t& ns, const std::optional<double>& ms, double factor = 1) {
    if (ms) ns = std::llround(*ms * factor * 1e6);
  };
  set(times.block_forward, its.block_forward);
  set(times.block_backward, its.block_backward);
  set(times.head_forward, its.head);
  set(times.head_backward, its.head, 2);
  return times;
}

/// Times of the layout, measured in its shapes unless a time is given.
ComputeTimes times_of(const PredictCommand& its) {
  const bool some = its.block_forward || its.block_backward || its.head;
  if (all_given(its) || some) return times_of(its, its.layout, rate_of(its));
  ComputeTimes times = measured_times(its.model, its.layout, its.at_once);
  if (its.optimizer_ns) times.optimizer_ns = *its.optimizer_ns;
  return times;
}

Network network_of(const PredictCommand& its) {
  Network network = network_named(its.network);
  if (its.ranks_per_host >= 0) network.ranks_per_host = its.ranks_per_host;
  return network;
}

double ms(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }
double gigabytes(std::int64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

Json json_of(const StepLayout& layout, const StepPrediction& step) {
  Json json = {{"layout", print(layout)},
               {"dp", layout.dp},
               {"tp", layout.tp},
               {"sp", layout.sp},
               {"pp", layout.pp},
               {"stage", layout.stage ? static_cast<int>(*layout.stage) : 0},
               {"step_ms", ms(step.ns)},
               {"tokens_per_second", step.tokens_per_second},
               {"bubble", step.bubble},
               {"exposed_ms", ms(step.exposed())},
               {"bytes_per_rank", step.memory.total()},
               {"state_bytes", step.memory.state},
               {"activation_bytes", step.memory.activations},
               {"messages", step.messages},
               {"sent_bytes", step.sent}};
  if (step.alone >= 0) json["hidden_ms"] = ms(step.hidden());
  return json;
}

void print(const PredictCommand& its, const ComputeTimes& times, const StepPrediction& step) {
  const StepLayout& layout = its.layout;
  const Gpt2Config& gpt2 = its.model.gpt2;
  fmt::print("GPT-2 of {} layers of {}, {} heads, {} parameters; {} samples of {} positions\n",
             gpt2.layers, gpt2.d_model, gpt2.heads, gpt2.parameters(), its.model.batch,
             its.model.seq);
  fmt::print("{} ranks: {}; {} micro-batches{}\n", layout.ranks(), transformer::print(layout),
             layout.micro_batches,
             layout.pp > 1 ? fmt::format(", {}", layout.schedule) : std::string());
  fmt::print("algorithms of collectives are chosen {}\n", its.choice == ChoiceRule::library
                                                              ? "as the library does"
                                                              : "by the network, in one piece");
  fmt::print("a block takes {:.4g} ms forward and {:.4g} ms backward{}\n\n",
             ms(times.block_forward), ms(times.block_backward),
             its.gflops || its.block_forward ? "" : ", by the speed of this machine");
  fmt::print("step           {:.4g} ms\n", ms(step.ns));
  fmt::print("tokens         {:.4g} a second\n", step.tokens_per_second);
  fmt::print("computation    {:.4g} ms, with the pipeline's bubble\n", ms(step.without_messages));
  fmt::print("bubble         {:.4g} of the ranks' time\n", step.bubble);
  fmt::print("communication  {:.4g} ms exposed, {:.4g} ms hidden\n", ms(step.exposed()),
             ms(step.hidden()));
  fmt::print("sent           {:.4g} GB in {} messages, by all ranks\n", gigabytes(step.sent),
             step.messages);
  fmt::print("memory         {:.4g} GB of a rank: {:.4g} state, {:.4g} activations{}\n",
             gigabytes(step.memory.total()), gigabytes(step.memory.state),
             gigabytes(step.memory.activations),
             step.memory.gathered > 0
                 ? fmt::format(", {:.4g} gathered", gigabytes(step.memory.gathered))
                 : std::string());
}

Json json_of(const StepItem& item) {
  return {{"begin_ms", ms(item.begin)}, {"end_ms", ms(item.end)}};
}

Json json_of(const JoinedStepItems& joined) {
  Json items = Json::array();
  for (const JoinedItem& both : joined.items) {
    const StepItem& item = both.predicted;
    Json& entry = items.emplace_back(Json{{"rank", item.rank}, {"name", item.name}});
    if (item.computation) {
      entry["class"] = name(*item.computation);
    } else {
      entry["ranks"] = item.ranks;
      entry["bytes"] = item.bytes;
    }
    entry["predicted"] = json_of(item);
    entry["measured"] = json_of(both.measured);
  }
  return {{"step_ms", ms(joined.measured_ns)},
          {"predicted_ms", ms(joined.predicted_ns)},
          {"missing", joined.missing.size()},
          {"items", items}};
}

/// The items of a kind, on all ranks.
struct KindOfItem {
  int items = 0;
  std::int64_t predicted = 0, measured = 0;  ///< ns, of all together
  std::vector<std::int64_t> late;            ///< ends, measured less predicted
};

void print(const JoinedStepItems& joined) {
  std::map<std::string, KindOfItem> kinds;
  for (const JoinedItem& both : joined.items) {
    const StepItem& item = both.predicted;
    KindOfItem& kind = kinds[item.computation ? std::string(name(*item.computation)) : item.name];
    ++kind.items;
    kind.predicted += item.duration();
    kind.measured += both.measured.duration();
    kind.late.push_back(both.measured.end - item.end);
  }
  fmt::print("\nthe last recorded step beside it: {:.4g} ms, predicted {:.4g} ms ({:+.1f} %)\n",
             ms(joined.measured_ns), ms(joined.predicted_ns),
             100 * (ms(joined.predicted_ns) / ms(joined.measured_ns) - 1));
  fmt::print("{:<16} {:>6} {:>14} {:>14} {:>18}\n", "items", "number", "predicted ms",
             "measured ms", "ends later by ms");
  for (auto& [kind, its] : kinds) {
    std::ranges::sort(its.late);
    const bool message = kind == "send" || kind == "recv";  // which pass beside all else
    const auto time = [&](std::int64_t ns) {
      return message ? std::string("-") : fmt::format("{:.4g}", ms(ns));
    };
    fmt::print("{:<16} {:>6} {:>14} {:>14} {:>18.4g}\n", kind, its.items, time(its.predicted),
               time(its.measured), ms(its.late[its.late.size() / 2]));
  }
  fmt::print("times are those of all ranks together; the last column is a median\n");
  if (!joined.missing.empty())
    fmt::print("{} predicted items are not in the recording\n", joined.missing.size());
}

void draw(const std::string& file, const Timeline& predicted, const JoinedStepItems* joined) {
  if (!joined) return diagrams::write(file, predicted);
  Timeline measured = joined->measured;
  measured.title = predicted.title;
  diagrams::Options picture;
  picture.prediction = &predicted;
  picture.joined = &joined->ends;
  diagrams::write(file, measured, picture);
}

int one(const PredictCommand& its, bool speaks) {
  if (!speaks) return 0;
  if (!its.output.empty()) diagrams::ending_of(its.output);
  const Network network = network_of(its);
  if (const std::string why = refusal(its.model, its.layout); !why.empty()) refuse(why);
  const ComputeTimes times = times_of(its);
  const StepPlan plan = step_plan(its.model, its.layout, times,
                                  CollectiveChoice(network, size_of(its.model.type), its.choice));
  std::optional<Trace> trace;
  if (!its.measured.empty()) trace = read_trace(its.measured);
  if (trace)
    for (const std::string& damage : trace->damage) fmt::print(stderr, "baton-train: {}\n", damage);
  Timeline timeline;
  PredictOptions how;
  how.panel = std::llround(its.panel_us * 1000);
  how.computes_apart = its.emulated;
  if (!its.output.empty() || trace) how.timeline = &timeline;
  const StepPrediction step = transformer::predict(plan, network, how);
  std::optional<JoinedStepItems> joined;
  if (trace) joined = join(items_of(plan, timeline), trace->timeline);
  if (!its.output.empty()) {
    timeline.title = fmt::format("a step of GPT-2, {}", transformer::print(its.layout));
    timeline.parameters = summary(network);
    draw(its.output, timeline, joined ? &*joined : nullptr);
  }
  if (its.json) {
    Json json = json_of(its.layout, step);
    if (joined) json["measured"] = json_of(*joined);
    fmt::print("{}\n", json.dump(1));
  } else {
    print(its, times, step);
    if (joined) print(*joined);
  }
  return 0;
}

/// A layout of a sweep.
struct Row {
  StepLayout layout;
  double estimate = 0;  ///< ns
  StepMemory memory;
  std::optional<StepPrediction> step;
};

std::vector<Row> rows_of(const PredictCommand& its, const Network& network,
                         const ComputeRate& rate) {
  const CollectiveChoice choice(network, size_of(its.model.type), its.choice);
  std::vector<Row> rows;
  for (const StepLayout& layout : layouts_of(its.model, its.ranks, its.layout)) {
    const StepMemory memory = memory_of(its.model, layout);
    if (its.memory_limit && gigabytes(memory.total()) > *its.memory_limit) continue;
    const StepPlan plan = step_plan(its.model, layout, times_of(its, layout, rate), choice);
    rows.push_back({layout, estimated_ns(plan), memory, {}});
  }
  if (rows.empty()) {
    refuse(fmt::format(
        "--sweep: expected a layout of {} ranks that can train this model{}, found "
        "none",
        its.ranks, its.memory_limit ? fmt::format(" within {} GB", *its.memory_limit) : ""));
  }
  std::ranges::stable_sort(rows, {}, &Row::estimate);
  PredictOptions how;
  how.panel = std::llround(its.panel_us * 1000);
  how.computes_apart = its.emulated;
  how.alone = false;
  for (std::size_t i = 0; i < rows.size() && i < static_cast<std::size_t>(its.best); ++i) {
    const ComputeTimes times = times_of(its, rows[i].layout, rate);
    rows[i].step =
        transformer::predict(step_plan(its.model, rows[i].layout, times, choice), network, how);
  }
  std::ranges::stable_sort(rows, [](const Row& a, const Row& b) {
    if (a.step.has_value() != b.step.has_value()) return a.step.has_value();
    return a.step ? a.step->ns < b.step->ns : a.estimate < b.estimate;
  });
  return rows;
}

int sweep(const PredictCommand& its, bool speaks) {
  if (!speaks) return 0;
  const Network network = network_of(its);
  const std::vector<Row> rows = rows_of(its, network, rate_of(its));
  if (its.json) {
    Json json = Json::array();
    for (const Row& row : rows) {
      Json& entry = json.emplace_back(Json{{"layout", transformer::print(row.layout)}});
      if (row.step) entry = json_of(row.layout, *row.step);
      entry["estimated_ms"] = row.estimate * 1e-6;
      entry["bytes_per_rank"] = row.memory.total();
    }
    fmt::print("{}\n", json.dump(1));
    return 0;
  }
  fmt::print("{:<44} {:>12} {:>12} {:>14} {:>8} {:>12} {:>10}\n", "layout", "step ms",
             "estimate ms", "tokens/s", "bubble", "exposed ms", "GB a rank");
  for (const Row& row : rows) {
    const auto simulated = [&](auto value) {
      return row.step ? fmt::format("{:.4g}", value(*row.step)) : std::string("-");
    };
    fmt::print("{:<44} {:>12} {:>12.4g} {:>14} {:>8} {:>12} {:>10.3g}\n",
               transformer::print(row.layout),
               simulated([](const StepPrediction& s) { return ms(s.ns); }), row.estimate * 1e-6,
               simulated([](const StepPrediction& s) { return s.tokens_per_second; }),
               simulated([](const StepPrediction& s) { return s.bubble; }),
               simulated([](const StepPrediction& s) { return ms(s.exposed()); }),
               gigabytes(row.memory.total()));
  }
  return 0;
}

}  // namespace

int predict(int argc, char** argv, bool speaks) {
  PredictCommand its;
  CLI::App app(description, "baton-train --predict");
  app.footer(std::string(footer));
  add_options(app, its);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& answer) {
    if (speaks) app.exit(answer);
    return 0;
  }
  settle(app, its);
  return its.sweep ? sweep(its, speaks) : one(its, speaks);
}

}  // namespace baton::transformer::program
