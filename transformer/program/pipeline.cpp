#include "pipeline.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "../pipeline/schedule.hpp"
#include "../pipeline/verify.hpp"
#include "baton/output_file.hpp"
#include "draw.hpp"
#include "values.hpp"

namespace baton::transformer::program {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* description =
    "Proves, explains and draws pipeline schedules: who computes which stage of which "
    "micro-batch,\n"
    "in which order.";
constexpr const char* footer =
    "An action is a stage, F (forward), B (backward), I (backward by the input) or W (by the\n"
    "weights), and a micro-batch: 2F0. A file has a line for each rank, its actions separated by\n"
    "commas; PyTorch's pipelining writes and reads it, too.\n"
    "\n"
    "Examples:\n"
    "  baton-train pipeline verify                                 every algorithm, many sizes\n"
    "  baton-train pipeline verify --file mine.csv\n"
    "  baton-train pipeline explain 1f1b --ranks 4 --micro-batches 8\n"
    "  baton-train pipeline explain zb_h1 --ranks 4 --micro-batches 8 -o zb.csv\n"
    "  baton-train pipeline draw 1f1b --ranks 4 --micro-batches 8 -o 1f1b.svg\n"
    "  baton-train pipeline draw gpipe --forward-ms 3 --network infiniband-100g -o gpipe.html\n"
    "\n"
    "Exit code: 0, 1 if a schedule is wrong, 2 if the program cannot do it.";

struct PipelineOptions {
  std::string algorithm, file, output;
  PipelineProblem problem{4, 8, 1};
  int max_ranks = 8, max_micro_batches = 16, max_stages = 4;
  bool json = false;
};

/// A schedule, and its documented cost if it is an algorithm's.
struct Subject {
  PipelineSchedule schedule;
  const PipelineAlgorithm* algorithm = nullptr;
  PipelineProof proof;
};

Subject subject_of(const PipelineOptions& options) {
  Subject subject;
  if (!options.file.empty()) {
    subject.schedule = parse_pipeline(file_contents(options.file), options.file);
    subject.proof = verify(subject.schedule);
    return subject;
  }
  subject.algorithm = &pipeline_algorithm(options.algorithm);
  subject.schedule = pipeline_schedule(options.algorithm, options.problem);
  subject.proof = verify(subject.schedule, subject.algorithm->cost(options.problem));
  return subject;
}

Json json_of(const Subject& subject) {
  const PipelineProof& proof = subject.proof;
  Json json{{"name", subject.schedule.name},
            {"ranks", subject.schedule.size()},
            {"stages", subject.schedule.stages},
            {"micro_batches", subject.schedule.micro_batches},
            {"right", proof.right()}};
  if (proof.right()) {
    json["bubble"] = proof.cost.bubble;
    json["peak"] = proof.cost.peak;
    json["messages"] = proof.cost.messages;
    json["units"] = proof.times.span;
  }
  json["flaws"] = Json::array();
  for (const PipelineFlaw& flaw : proof.flaws) {
    Json& entry = json["flaws"].emplace_back();
    entry["kind"] = name(flaw.kind);
    if (flaw.rank >= 0) entry["rank"] = flaw.rank;
    if (flaw.stage >= 0) entry["stage"] = flaw.stage;
    if (flaw.micro_batch >= 0) entry["micro_batch"] = flaw.micro_batch;
    entry["sentence"] = flaw.text;
  }
  return json;
}

std::string counted(std::int64_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : what.ends_with('h') ? "es" : "s");
}

void print_flaws(const Subject& subject) {
  for (const PipelineFlaw& flaw : subject.proof.flaws)
    fmt::print("{}: wrong ({}): {}\n", subject.schedule.name, name(flaw.kind), flaw.text);
}

int verify_one(const PipelineOptions& options) {
  const Subject subject = subject_of(options);
  const PipelineProof& proof = subject.proof;
  if (options.json) {
    fmt::print("{}\n", json_of(subject).dump(2));
  } else if (proof.right()) {
    fmt::print("{}: right: {}, {}, {}; bubble {:.4g}, peak {}, {}\n", subject.schedule.name,
               counted(subject.schedule.size(), "rank"), counted(subject.schedule.stages, "stage"),
               counted(subject.schedule.micro_batches, "micro-batch"), proof.cost.bubble,
               fmt::join(proof.cost.peak, " "), counted(proof.cost.messages, "message"));
  } else {
    print_flaws(subject);
  }
  return proof.right() ? 0 : 1;
}

/// Every problem of the grid that an algorithm serves.
int verify_all(const PipelineOptions& options) {
  bool right = true;
  Json rows = Json::array();
  for (const PipelineAlgorithm& algorithm : pipeline_algorithms()) {
    if (!options.algorithm.empty() && algorithm.name != options.algorithm) continue;
    int proved = 0, wrong = 0;
    for (int p = 1; p <= options.max_ranks; ++p) {
      for (int m = 1; m <= options.max_micro_batches; ++m) {
        for (int v = 1; v <= options.max_stages; ++v) {
          PipelineOptions one = options;
          one.algorithm = algorithm.name, one.problem = {p, m, v};
          if (!refusal(algorithm, one.problem).empty()) continue;
          const Subject subject = subject_of(one);
          (subject.proof.right() ? proved : wrong) += 1;
          if (!options.json) print_flaws(subject);
        }
      }
    }
    right = right && wrong == 0;
    rows.push_back({{"name", algorithm.name}, {"proved", proved}, {"wrong", wrong}});
    if (!options.json) {
      fmt::print("{:<18} {} schedules proved{}\n", algorithm.name, proved,
                 wrong > 0 ? fmt::format(", {} wrong", wrong) : "");
    }
  }
  if (options.json) fmt::print("{}\n", rows.dump(2));
  return right ? 0 : 1;
}

/// A line for each rank, a column for each unit of time; empty cells are the bubble.
void print_grid(const Subject& subject) {
  const PipelineSchedule& schedule = subject.schedule;
  std::size_t width = 1;
  for (const auto& actions : schedule.ranks)
    for (const PipelineAction& action : actions) width = std::max(width, print(action).size());
  const auto label = fmt::format("{}", schedule.size() - 1).size();
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::string line;
    std::int64_t column = 0;
    const auto fill = [&](std::int64_t until, char sign) {
      for (; column < until; ++column) line += fmt::format(" {:<{}}", sign, width);
    };
    for (std::size_t k = 0; k < schedule.ranks[rank].size(); ++k) {
      const PipelineAction& action = schedule.ranks[rank][k];
      const std::int64_t start = subject.proof.times.start[rank][k];
      fill(start, '.');
      line += fmt::format(" {:<{}}", print(action), width);
      ++column;
      fill(start + units(action.work), '-');
    }
    fill(subject.proof.times.span, '.');
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("rank {:>{}} {}\n", rank, label, line);
  }
}

int explain(const PipelineOptions& options) {
  const Subject subject = subject_of(options);
  if (!subject.proof.right()) {
    print_flaws(subject);
    return 1;
  }
  if (!options.output.empty()) write_file(options.output, print(subject.schedule));
  if (options.json) {
    fmt::print("{}\n", json_of(subject).dump(2));
    return 0;
  }
  const PipelineCost& cost = subject.proof.cost;
  const auto formula = [&](const std::string PipelineAlgorithm::*text) {
    return subject.algorithm ? " = " + subject.algorithm->*text : std::string();
  };
  print_grid(subject);
  fmt::print("\n. waits, - goes on; F, I, W take one unit of time, B two; {} units in all\n",
             subject.proof.times.span);
  fmt::print("bubble    {:.4g}{}\n", cost.bubble, formula(&PipelineAlgorithm::bubble));
  fmt::print("peak      {}{}: micro-batches of a stage whose activations a rank keeps\n",
             fmt::join(cost.peak, " "), formula(&PipelineAlgorithm::peak));
  fmt::print("messages  {}{}\n", cost.messages, formula(&PipelineAlgorithm::messages));
  if (subject.algorithm) {
    fmt::print("source    {}\n", subject.algorithm->source);
    fmt::print(
        "\nHere p = {} (ranks), m = {} (micro-batches), v = {} (stages per rank), r: the rank\n",
        options.problem.ranks, options.problem.micro_batches, options.problem.stages_per_rank);
  }
  return 0;
}

int draw(const PipelineOptions& options, const DrawOptions& picture) {
  const Subject subject = subject_of(options);
  if (!subject.proof.right()) {
    print_flaws(subject);
    return 1;
  }
  const Drawn drawn = draw(subject.schedule, picture);
  const double ms = static_cast<double>(drawn.ns) * 1e-6;
  if (options.json) {
    Json json = json_of(subject);
    json["ms"] = ms;
    json["bubble"] = drawn.bubble;
    json["picture"] = picture.output;
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}: {:.4g} ms, bubble {:.4g}\n", picture.output, ms, drawn.bubble);
  }
  return 0;
}

void add_picture(CLI::App& app, DrawOptions& options) {
  const CLI::Validator positive = number(1e-6, 1e9);
  app.add_option("-o,--output", options.output,
                 "ends with .svg, .png, .pdf, .html, .drawio or .json")
      ->type_name("FILE")
      ->required();
  app.add_option("--forward-ms", options.forward_ms, "of a stage, for a micro-batch [1]")
      ->check(positive);
  app.add_option("--backward-ms", options.backward_ms, "[twice --forward-ms]")->check(positive);
  app.add_option("--weight-part", options.weight_part,
                 "of backward's time, where it is cut in two parts [0.5]")
      ->check(number(0, 1));
  app.add_option(
         "--boundary-bytes", options.bytes,
         "of activations, and of gradients, between two stages, for a micro-batch [1048576]")
      ->check(whole_number(0, std::int64_t{1} << 40));
  app.add_option("--network", options.network,
                 "by name or file, as of baton simulate [messages take no time]");
  app.add_flag("--critical-path", options.critical_path, "highlights what decides the time");
  app.add_option("--title", options.title, "above the picture");
}

void add_problem(CLI::App& app, PipelineOptions& options) {
  app.add_option("algorithm", options.algorithm, "naive, gpipe, 1f1b, interleaved_1f1b or zb_h1")
      ->type_name("ALGORITHM");
  app.add_option("--file", options.file, "a schedule of your own")->type_name("FILE.csv");
  app.add_option("--ranks", options.problem.ranks, "[4]")->check(whole_number(1, 4096));
  app.add_option("--micro-batches", options.problem.micro_batches, "[8]")
      ->check(whole_number(1, 65536));
  app.add_option("--stages-per-rank", options.problem.stages_per_rank, "[1]")
      ->check(whole_number(1, 1024));
  app.add_flag("--json", options.json, "JSON");
}

/// Throws Error(invalid_argument) unless there is one subject at most, and its numbers are its own.
void expect_one(const CLI::App& app, const PipelineOptions& options) {
  if (options.file.empty()) return;
  for (const char* other : {"algorithm", "--ranks", "--micro-batches", "--stages-per-rank"})
    if (app.count(other) > 0)
      refuse(fmt::format("--file: expected no {} with it, found one", other));
}

}  // namespace

int pipeline(int argc, char** argv, bool speaks) {
  PipelineOptions options;
  CLI::App app(description, "baton-train pipeline");
  app.footer(std::string(footer));
  app.require_subcommand(1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  CLI::App& proves = *app.add_subcommand("verify", "proves schedules");
  add_problem(proves, options);
  proves.add_option("--max-ranks", options.max_ranks, "without --ranks: up to so many [8]")
      ->check(whole_number(1, 64));
  proves.add_option("--max-micro-batches", options.max_micro_batches, "up to so many [16]")
      ->check(whole_number(1, 256));
  CLI::App& explains = *app.add_subcommand("explain", "shows a schedule, and its cost");
  add_problem(explains, options);
  explains.add_option("-o,--output", options.output, "its text form")->type_name("FILE.csv");
  DrawOptions picture;
  CLI::App& draws = *app.add_subcommand("draw", "draws a schedule over predicted times");
  add_problem(draws, options);
  add_picture(draws, picture);
  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::Success& answer) {
    if (speaks) app.exit(answer);
    return 0;
  }
  const bool is_proof = proves.parsed();
  const CLI::App& used = is_proof ? proves : draws.parsed() ? draws : explains;
  expect_one(used, options);
  if (!speaks) return 0;
  if (!is_proof) {
    if (options.algorithm.empty() && options.file.empty())
      refuse(fmt::format("pipeline {}: expected an algorithm or --file, found neither",
                         used.get_name()));
    return draws.parsed() ? draw(options, picture) : explain(options);
  }
  if (!options.algorithm.empty()) pipeline_algorithm(options.algorithm);
  const bool one = !options.file.empty() || used.count("--ranks") > 0 ||
                   used.count("--micro-batches") > 0 || used.count("--stages-per-rank") > 0;
  if (!one) return verify_all(options);
  if (options.algorithm.empty() && options.file.empty())
    refuse("pipeline verify: expected an algorithm with these numbers, found none");
  return verify_one(options);
}

}  // namespace baton::transformer::program
