#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "baton/explain.hpp"
#include "baton/schedule/text.hpp"
#include "commands.hpp"
#include "json.hpp"
#include "wanted.hpp"

namespace baton::cli {
namespace {

struct ExplainOptions {
  Wanted wanted;
  std::string format;
  int rank = -1;
  bool every_step = false, json = false;
  std::vector<double> values;
};

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

/// The values of the command line, cut into the ranks' inputs.
std::vector<std::vector<double>> inputs(const std::vector<double>& values,
                                        const std::vector<Schedule>& schedules) {
  std::vector<std::vector<double>> inputs(schedules.size());
  if (values.empty()) return {};
  const Schedule::Header& first = schedules[0].header();
  if (first.collective == Collective::scatter) {
    inputs[static_cast<std::size_t>(first.root)] = values;
    return inputs;
  }
  const std::size_t each = values.size() / inputs.size();
  if (each * inputs.size() != values.size()) {
    refuse(fmt::format("expected the same number of values for each of {} ranks, found {} values",
                       inputs.size(), values.size()));
  }
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(r * each);
    inputs[r].assign(begin, begin + static_cast<std::ptrdiff_t>(each));
  }
  return inputs;
}

int explain(const ExplainOptions& options, Launch& launch) {
  if (launch.rank() != 0) return 0;
  const auto schedules = schedules_of(options.wanted);
  if (options.rank >= static_cast<int>(schedules.size())) {
    refuse(
        fmt::format("expected a rank from 0 to {}, found {}", schedules.size() - 1, options.rank));
  }
  std::vector<const Schedule*> shown;
  for (const Schedule& schedule : schedules) {
    if (options.rank < 0 || schedule.rank() == options.rank) shown.push_back(&schedule);
  }
  WalkThrough how;
  how.values = inputs(options.values, schedules);
  how.op = op_named(options.wanted.op);
  how.every_step = options.every_step;

  if (options.json) {
    std::vector<Json> ranks;
    for (const Schedule* schedule : shown) {
      ranks.push_back(Json::object({{"rank", schedule->rank()},
                                    {"words", in_words(*schedule)},
                                    {"text", print(*schedule)}}));
    }
    const Schedule::Header& header = schedules[0].header();
    Json::object({{"collective", name(header.collective)},
                  {"algorithm", header.algorithm},
                  {"size", header.size},
                  {"ranks", Json::array(ranks)},
                  {"walk_through", walk_through(schedules, how)}})
        .print();
    return 0;
  }
  std::string text;
  const std::string& format = options.format;
  for (const Schedule* schedule : shown) {
    if (format == "text") text += print(*schedule);
    if (format.empty() || format == "words") text += in_words(*schedule) + "\n";
  }
  if (format.empty() || format == "table") text += walk_through(schedules, how);
  fmt::print("{}", text);
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Command& command) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* sub = app.add_subcommand(
      "explain", "A schedule in words, and a table of what every rank holds after every round");
  auto* collective = sub->add_option("collective", options->wanted.collective, "such as all_reduce")
                         ->type_name("");
  auto* algorithm =
      sub->add_option("--algorithm", options->wanted.algorithm, "(default: the reference)")
          ->type_name("A");
  auto* ranks = sub->add_option("--ranks", options->wanted.ranks, "number of ranks (default 4)")
                    ->type_name("P")
                    ->check(whole_number(1, 4096));
  sub->add_option("--hosts", options->wanted.hosts,
                  "2x4: 2 hosts of 4 ranks each; 0,1,0,1: the host of each rank (default: one)")
      ->type_name("HOSTS");
  sub->add_option("--rank", options->rank, "only this rank's schedule")
      ->type_name("R")
      ->check(whole_number(0, 4095));
  auto* count = sub->add_option("--count", options->wanted.count,
                                "elements: of a vector (default P), of a rank's block (default 1)")
                    ->type_name("N")
                    ->check(whole_number(0, 1 << 20));
  sub->add_option("--root", options->wanted.root, "(default 0)")
      ->type_name("R")
      ->check(whole_number(0, 4095));
  sub->add_option("--segment", options->wanted.segment,
                  "elements per message piece (default: not cut)")
      ->type_name("N")
      ->check(whole_number(0, INT64_MAX));
  auto* fused = sub->add_flag("--fused,--grouped", options->wanted.in_groups,
                              "messages in fused groups, as for NCCL; a round is a fused group");
  sub->add_option("--window", options->wanted.window,
                  "messages of one lane, peer and direction in a fused group (default: any number)")
      ->type_name("N")
      ->check(whole_number(0, INT32_MAX))
      ->needs(fused);
  sub->add_option("--op", options->wanted.op, "operation of the table (default sum)")
      ->type_name("OP");
  sub->add_flag("--in-place", options->wanted.in_place, "input and output are the same memory");
  sub->add_option("--format", options->format,
                  "words, table (both by default), or text: the form that --schedule reads")
      ->check(CLI::IsMember({"words", "text", "table"}));
  sub->add_flag("--every-step", options->every_step, "a row of the table for every step");
  sub->add_option("--values", options->values,
                  "inputs of the ranks, rank after rank (default: 10 (r + 1) + i)")
      ->type_name("X...");
  sub->add_option("--schedule", options->wanted.schedule,
                  "instead, a schedule of your own (format: lib/schedule/README.md)")
      ->type_name("FILE")
      ->excludes(collective)
      ->excludes(algorithm)
      ->excludes(ranks)
      ->excludes(count);
  sub->add_flag("--json", options->json, "print JSON");
  sub->footer(
      "Examples:\n"
      "  baton explain broadcast --algorithm binomial --ranks 4 --root 1 --count 1\n"
      "  baton explain all_reduce --count 1 --values 1 2 3 4 --every-step --format table\n"
      "  baton explain all_gather --ranks 3 --count 2 --values 0 10 1 11 2 12\n"
      "  baton explain all_reduce --algorithm ring --ranks 3 --format text >ring.txt\n"
      "  baton explain broadcast --algorithm chain --count 8 --segment 2 --fused --window 1");
  sub->callback([options, &command] {
    command = [options](Launch& launch) { return explain(*options, launch); };
  });
}

}  // namespace baton::cli
