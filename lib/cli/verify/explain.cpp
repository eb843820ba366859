#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "baton/explain.hpp"
#include "baton/schedule/text.hpp"
#include "cli/commands.hpp"
#include "cli/common/collective_options.hpp"
#include "cli/common/text.hpp"

namespace baton::cli::verify {
namespace {

struct ExplainOptions {
  ScheduleRequest request;
  std::string format;
  int rank = -1;
  bool every_step = false, json = false;
  std::vector<double> values;
};

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
  const auto schedules = schedules_of(options.request);
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
  how.op = options.request.data.op_kind();
  how.every_step = options.every_step;

  const bool program = schedules[0].collective() == Collective::program;  // without values
  if (options.json) {
    const auto rank = [](const Schedule* schedule) {
      return Json::object(
          {{"rank", schedule->rank()}, {"words", in_words(*schedule)}, {"text", print(*schedule)}});
    };
    const Schedule::Header& header = schedules[0].header();
    const Json walk = program ? Json() : Json(walk_through(schedules, how));
    print(Json::object({{"collective", name(header.collective)},
                        {"algorithm", header.algorithm},
                        {"size", header.size},
                        {"ranks", mapped(shown, rank)},
                        {"walk_through", walk}}));
    return 0;
  }
  std::string text;
  const std::string& format = options.format;
  for (const Schedule* schedule : shown) {
    if (format == "text") text += print(*schedule);
    if (format.empty() || format == "words") text += in_words(*schedule) + "\n";
  }
  if ((format.empty() && !program) || format == "table") text += walk_through(schedules, how);
  fmt::print("{}", text);
  return 0;
}

}  // namespace

void add_explain(CommandLine& program) {
  const auto [set, options] = program.add_command(
      "explain", "Print a schedule in words, and a table of every rank's memory after every round",
      explain);
  ScheduleRequest& request = options->request;
  const CollectiveOptionSet data(set, request.data);
  const Option collective = data.collective();
  const Option algorithm = data.algorithm("by name (default: the reference)");
  const Option ranks = data.ranks("number of ranks (default 4)");
  const Option hosts = data.hosts();
  set.add("--rank", options->rank, "only this rank's schedule").form("R").range(0, 4095);
  const Option count = data.count().range(0, 1 << 20);
  const Option root = data.root();
  const Option segment =
      set.add("--segment", request.segment, "elements per message piece (default: not cut)")
          .form("N")
          .range(0);
  const Option fused = set.flag("--fused,--grouped", request.fused,
                                "messages in fused groups, as for NCCL; a round is a fused group");
  set.add("--window", request.window,
          "messages of one channel in a fused group (default: any number)")
      .form("N")
      .range(0, INT32_MAX)
      .needs(fused);
  data.op();
  const Option in_place = data.in_place();
  set.add("--format", options->format,
          "words, table (both by default), or text: the form that --schedule reads")
      .one_of({"words", "text", "table"});
  set.flag("--every-step", options->every_step, "a row of the table for every step");
  set.add("--values", options->values,
          "inputs of the ranks, rank after rank (default: 10 (r + 1) + i)")
      .form("X...");
  const auto files = data.files_and_goal(
      {collective, algorithm, ranks, hosts, count, root, segment, data.registry()});
  in_place.excludes({files[0], files[2]});
  add_json(set, options->json);
  set.footer(
      "Examples:\n"
      "  baton explain broadcast --algorithm binomial --ranks 4 --root 1 --count 1\n"
      "  baton explain all_reduce --count 1 --values 1 2 3 4 --every-step --format table\n"
      "  baton explain all_gather --ranks 3 --count 2 --values 0 10 1 11 2 12\n"
      "  baton explain all_reduce --algorithm ring --ranks 3 --format text >ring.txt\n"
      "  baton explain broadcast --algorithm chain --count 8 --segment 2 --fused --window 1");
}

}  // namespace baton::cli::verify
