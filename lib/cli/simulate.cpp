#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "baton/schedule/text.hpp"
#include "clock.hpp"
#include "commands.hpp"
#include "forecast.hpp"
#include "forecast_report.hpp"
#include "jobs.hpp"
#include "text.hpp"

namespace baton::cli {
namespace {

constexpr std::int64_t most_path_steps = 100'000;  // of schedules whose critical path is looked for

std::string cut(std::int64_t segment) {
  return segment > 0 ? fmt::format(", pieces of {}", human_bytes(segment)) : "";
}

int one(const Setting& setting, const Exercise& exercise, const Algorithm& algorithm) {
  Forecast found = forecast(setting, exercise, algorithm);
  if (!found.refused.empty()) throw Error(ErrorCode::unsupported, found.refused);
  std::unique_ptr<Path> path;
  if (found.prediction.steps <= most_path_steps) {
    Setting same = setting;
    same.segment = found.segment;
    same.command.calls = 1;
    path = std::make_unique<Path>(
        path_of(*forecast(same, exercise, algorithm, true).prediction.timeline));
  }
  if (setting.command.json) {
    Json::object({{"network", setting.network.name},
                  {"parameters", summary(setting.network)},
                  {"collective", name(exercise.collective())},
                  {"ranks", exercise.ranks()},
                  {"hosts", exercise.problem.hosts ? exercise.problem.hosts->count() : 1},
                  {"type", name(setting.type)},
                  {"window", setting.command.window},
                  {"rows", Json::array({json(found, exercise, path.get())})}})
        .print();
    return 0;
  }
  fmt::print("{} by {}{}, {} ranks on {}\n{}\n\n", exercise.text(), algorithm.name,
             cut(found.segment), exercise.ranks(),
             counted(exercise.problem.hosts ? exercise.problem.hosts->count() : 1, "host"),
             summary(setting.network));
  print(found, path.get());
  return 0;
}

int several(const Setting& setting, const Exercise& exercise) {
  std::vector<Forecast> found;
  for (const Algorithm* algorithm : setting.algorithms(exercise.problem)) {
    found.push_back(forecast(setting, exercise, *algorithm));
  }
  std::stable_sort(found.begin(), found.end(), [](const Forecast& a, const Forecast& b) {
    if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
    return a.prediction.total < b.prediction.total;
  });
  const int hosts = exercise.problem.hosts ? exercise.problem.hosts->count() : 1;
  if (setting.command.json) {
    std::vector<Json> rows;
    for (const Forecast& f : found) rows.push_back(json(f, exercise, nullptr));
    Json::object({{"network", setting.network.name},
                  {"parameters", summary(setting.network)},
                  {"collective", name(exercise.collective())},
                  {"ranks", exercise.ranks()},
                  {"hosts", hosts},
                  {"type", name(setting.type)},
                  {"window", setting.command.window},
                  {"rows", Json::array(rows)}})
        .print();
    return 0;
  }
  fmt::print("{}, {} ranks on {}\n{}\n\n", exercise.text(), exercise.ranks(),
             counted(hosts, "host"), summary(setting.network));
  fmt::print("{:<24} {:>10} {:>12} {:>12} {:>12} {:>10} {:>12}\n", "algorithm", "segment", "time",
             "median rank", "first rank", "messages", "host link");
  for (const Forecast& f : found) {
    if (!f.refused.empty()) {
      fmt::print("{:<24} {}\n", f.algorithm->name, f.refused);
      continue;
    }
    const Spread spread = spread_of(f.prediction.finish);
    const HostBytes most = most_bytes(f.prediction);
    const auto time = [](std::int64_t ns) { return human_time(static_cast<double>(ns) * 1e-3); };
    fmt::print("{:<24} {:>10} {:>12} {:>12} {:>12} {:>10} {:>12}\n", f.algorithm->name,
               f.segment > 0 ? human_bytes(f.segment) : "-", time(spread.most), time(spread.median),
               time(spread.least), f.prediction.messages,
               human_bytes(std::max(most.sent, most.received)));
  }
  return 0;
}

/// A user's own schedules.
int own(const Setting& setting) {
  auto schedules = std::make_shared<std::vector<Schedule>>(
      parse(file_text(setting.command.schedule), setting.command.schedule));
  const Exercise exercise = schedule_exercise(*schedules, setting.type, OpKind::sum);
  SimulateOptions options;
  options.hosts = setting.hosts(static_cast<int>(schedules->size()));
  options.window = setting.command.window;
  options.timeline = true;
  Forecast found;
  const double begin = now();
  found.prediction = simulate(schedules, setting.type_bytes(), setting.network, options);
  found.seconds = now() - begin;
  const Path path = path_of(*found.prediction.timeline);
  if (setting.command.json) {
    Json::object({{"network", setting.network.name},
                  {"parameters", summary(setting.network)},
                  {"schedule", setting.command.schedule},
                  {"ranks", exercise.ranks()},
                  {"rows", Json::array({json(found, exercise, &path)})}})
        .print();
    return 0;
  }
  fmt::print("{}, {} ranks\n{}\n\n", setting.command.schedule, exercise.ranks(),
             summary(setting.network));
  print(found, &path);
  return 0;
}

int run(const SimulateCommand& command, Launch& launch) {
  if (command.measure > 0) return measured(command, launch);
  if (launch.rank() != 0) return 0;
  const Setting setting(command);
  if (!command.schedule.empty()) return own(setting);
  if (!command.sweep.empty()) return sweep(setting);
  const Collective collective = collective_named(command.collective);
  const Exercise exercise =
      setting.exercise(collective, command.ranks, sizes_named(command.bytes).front());
  if (command.algorithm == "all") return several(setting, exercise);
  return one(setting, exercise, *setting.algorithms(exercise.problem).front());
}

}  // namespace

void add_simulate(CLI::App& app, Command& command) {
  auto options = std::make_shared<SimulateCommand>();
  CLI::App* sub = app.add_subcommand(
      "simulate",
      "The time that a collective takes on a network, predicted by simulating the ranks that\n"
      "follow its schedule");
  auto* collective =
      sub->add_option("collective", options->collective, "such as all_reduce (the default)")
          ->type_name("");
  auto* algorithm =
      sub->add_option("--algorithm", options->algorithm,
                      "by name, or all that serve the problem (default: the library chooses)")
          ->type_name("A");
  auto* ranks = sub->add_option("--ranks", options->ranks, "number of ranks (default 8)")
                    ->type_name("P")
                    ->check(whole_number(1, 1 << 20));
  auto* bytes = sub->add_option("--bytes", options->bytes,
                                "size of the whole vector, as nccl-tests counts it (default 1M)")
                    ->type_name("SIZE");
  std::string names;
  for (const std::string& name : shipped_networks()) names += (names.empty() ? "" : ", ") + name;
  sub->add_option("--network", options->network,
                  "a file (baton calibrate writes one), or one of\n" + names +
                      "\n(default shared-memory; format: lib/simulate/README.md)")
      ->type_name("FILE");
  auto* hosts = sub->add_option("--hosts", options->hosts,
                                "2x4: 2 hosts of 4 ranks each; 0,1,0,1: the host of each rank")
                    ->type_name("HOSTS");
  sub->add_option("--per-host", options->per_host,
                  "so many ranks on each host, 0: all on one (default: as the network says)")
      ->type_name("K")
      ->check(whole_number(0, 1 << 20))
      ->excludes(hosts);
  sub->add_option("--segment", options->segment,
                  "bytes per message piece, 0: not cut, best: of those that the library tries\n"
                  "(default: the library chooses)")
      ->type_name("S");
  sub->add_option("--window", options->window,
                  "messages in flight per lane, peer and direction (default 2)")
      ->type_name("W")
      ->check(whole_number(1, 32));
  sub->add_option("--root", options->root, "(default 0)")
      ->type_name("R")
      ->check(whole_number(0, INT32_MAX));
  sub->add_option("--dtype", options->type,
                  "i8 u8 i32 u32 i64 u64 f8e4m3 f8e5m2 f16 bf16 f32 f64 (default f32)")
      ->type_name("TYPE");
  auto* sweep =
      sub->add_option("--sweep", options->sweep,
                      "ranks=FIRST:LAST or bytes=FIRST:LAST, doubling: times of the algorithms,\n"
                      "all unless one is named, and where which of them is the best")
          ->type_name("WHAT");
  auto* schedule =
      sub->add_option("--schedule", options->schedule,
                      "instead, a schedule of your own (format: lib/schedule/README.md)")
          ->type_name("FILE")
          ->excludes(collective)
          ->excludes(algorithm)
          ->excludes(ranks)
          ->excludes(bytes)
          ->excludes(sweep);
  sub->add_option(
         "--measure", options->measure,
         "runs it as well, so many times, on the ranks of mpirun or on threads, and prints\n"
         "predicted and measured times; collective may be all, --bytes a range")
      ->type_name("RUNS")
      ->check(whole_number(1, 1'000'000))
      ->excludes(sweep)
      ->excludes(schedule);
  sub->add_option("--calls", options->calls, "so many in a row, times per call (default 1)")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000));
  sub->add_option("--factor", options->factor, "from one of these sizes to the next (default 2)")
      ->type_name("N")
      ->check(whole_number(2, 1 << 20));
  sub->add_flag("--json", options->json, "print JSON; scripts/plot draws that of --sweep");
  sub->add_flag("--progress", options->progress, "show progress even where stderr is no terminal");
  sub->footer(
      "Examples:\n"
      "  baton simulate all_reduce --algorithm circulant --ranks 65536 --network infiniband-100g\n"
      "  baton simulate all_reduce --algorithm all --ranks 64 --per-host 8 --bytes 16M\n"
      "  baton simulate broadcast --sweep bytes=8:64M --network virtual-cluster-1gbit\n"
      "  baton simulate all_reduce --sweep ranks=2:1024 --bytes 64K --json >sweep.json\n"
      "  scripts/plot sweep.json -o plots\n"
      "  mpirun -n 4 baton simulate all --algorithm all --bytes 16K:1M --measure 9");
  sub->callback([options, &command] {
    command = [options](Launch& launch) { return run(*options, launch); };
  });
}

}  // namespace baton::cli
