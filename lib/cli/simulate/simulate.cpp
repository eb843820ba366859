#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.hpp"
#include "cli/common/text.hpp"
#include "simulation.hpp"

namespace baton::cli::simulate {
namespace {

constexpr std::int64_t most_path_steps = 100'000;  // of schedules whose critical path is looked for

std::string time(std::int64_t ns) { return human_time(static_cast<double>(ns) * 1e-3); }

constexpr std::size_t most_hosts = 64;  // whose bytes are listed

double events_per_second(const Prediction& p) {
  return p.seconds > 0 ? static_cast<double>(p.events) / p.seconds : 0;
}

/// The chain of events that decided the time of the last step.
struct CriticalPath {
  std::int64_t messages = 0, folds = 0, copies = 0, computations = 0;
  std::vector<int> ranks;  ///< that it leads through
};

std::string text(const CriticalPath& path) {
  constexpr std::size_t most = 12;
  std::string text = counted(path.messages, "message");
  if (path.folds > 0) text += ", " + counted(path.folds, "fold");
  if (path.copies > 0) text += fmt::format(", {} copies", path.copies);
  if (path.computations > 0) text += ", " + counted(path.computations, "computation");
  text += ", by ranks";
  for (std::size_t i = 0; i < std::min(path.ranks.size(), most); ++i) {
    text += fmt::format("{}{}", i == 0 ? " " : " > ", path.ranks[i]);
  }
  if (path.ranks.size() > most) text += fmt::format(" > … ({} more)", path.ranks.size() - most);
  return text;
}

/// How the ranks' times are spread.
struct Spread {
  std::int64_t least, median, most;
};

Spread spread_of(std::vector<std::int64_t> finish) {
  std::sort(finish.begin(), finish.end());
  return {finish.front(), finish[finish.size() / 2], finish.back()};
}

/// Of the host that sends, and of the one that receives, the most.
HostBytes most_bytes(const Prediction& prediction) {
  HostBytes most;
  for (const HostBytes& host : prediction.hosts) {
    most.sent = std::max(most.sent, host.sent);
    most.received = std::max(most.received, host.received);
  }
  return most;
}

/// Whether the path waits for the message of its receive at `i`. Other receives are on it only
/// because posting them occupied their rank.
bool waits_for_message(const Timeline& timeline, const std::vector<std::uint32_t>& path,
                       std::size_t i) {
  const Event& recv = timeline.events[path[i]];
  // Only the two ends of a message follow each other on different ranks.
  if (i > 0 && timeline.events[path[i - 1]].rank != recv.rank) return true;
  // Without its send: one posted so late that the sender, in a rendezvous, waited for it.
  if (i + 1 == path.size()) return recv.end > recv.start;
  const Event& next = timeline.events[path[i + 1]];
  const std::int64_t begin = next.message() ? next.posted : next.start;
  return next.rank != recv.rank || (recv.end > recv.start && begin >= recv.end);
}

CriticalPath path_of(Timeline timeline) {
  finish(timeline);
  CriticalPath path;
  const std::vector<std::uint32_t> events = critical_path(timeline);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = timeline.events[events[i]];
    if (path.ranks.empty() || path.ranks.back() != event.rank) path.ranks.push_back(event.rank);
    if (event.kind == StepKind::recv && waits_for_message(timeline, events, i)) ++path.messages;
    if (event.kind == StepKind::fold) ++path.folds;
    if (event.kind == StepKind::copy || event.kind == StepKind::divide) ++path.copies;
    if (event.kind == StepKind::compute) ++path.computations;
  }
  return path;
}

/// `path` may be empty: not looked for.
Json json_of(const Forecast& forecast, const Case& subject,
             const std::optional<CriticalPath>& path) {
  const Prediction& p = forecast.prediction;
  if (!forecast.refused.empty()) {
    return Json::object({{"algorithm", forecast.algorithm->name}, {"refused", forecast.refused}});
  }
  const Spread spread = spread_of(p.finish);
  const auto json_of_host = [](const HostBytes& host) {
    return Json::object({{"sent", host.sent}, {"received", host.received}});
  };
  const bool listed = p.hosts.size() <= most_hosts;
  return Json::object(
      {{"algorithm", forecast.algorithm ? Json(forecast.algorithm->name) : Json()},
       {"segment_bytes", forecast.segment},
       {"bytes", subject.bytes()},
       {"time_ns", p.total},
       {"finish_ns",
        Json::object({{"min", spread.least}, {"median", spread.median}, {"max", spread.most}})},
       {"messages", p.messages},
       {"steps", p.steps},
       {"bytes_within_hosts", p.bytes_within},
       {"host_link_bytes", listed ? Json(mapped(p.hosts, json_of_host)) : Json::array()},
       {"most_host_link_bytes", json_of_host(most_bytes(p))},
       {"critical_path", path ? Json::object({{"messages", path->messages},
                                              {"folds", path->folds},
                                              {"copies", path->copies},
                                              {"computations", path->computations},
                                              {"ranks", path->ranks}})
                              : Json()},
       {"events", p.events},
       {"simulating_seconds", p.seconds},
       {"seconds", forecast.seconds},
       {"events_per_second", events_per_second(p)}});
}

void print(const Forecast& forecast, const std::optional<CriticalPath>& path) {
  const Prediction& p = forecast.prediction;
  const Spread spread = spread_of(p.finish);
  fmt::print("time           {}\n", time(p.total));
  fmt::print("ranks finish   {} the first, {} the median\n", time(spread.least),
             time(spread.median));
  fmt::print("messages       {}\n", p.messages);
  if (p.bytes_within > 0) fmt::print("within hosts   {}\n", human_bytes(p.bytes_within));
  if (p.hosts.size() > 1) {
    const HostBytes most = most_bytes(p);
    fmt::print("host links     {} out and {} in at most\n", human_bytes(most.sent),
               human_bytes(most.received));
  }
  if (path) fmt::print("critical path  {}\n", text(*path));
  fmt::print("simulated      {} events in {}, {:.1f} million/s; with its schedules {}\n", p.events,
             human_time(p.seconds * 1e6), events_per_second(p) * 1e-6,
             human_time(forecast.seconds * 1e6));
}

int hosts_of(const Case& subject) {
  return subject.problem.hosts ? subject.problem.hosts->count() : 1;
}

Json head_of(const Setting& setting) {
  return Json::object(
      {{"network", setting.network.name}, {"parameters", summary(setting.network)}});
}

int print_json(const Setting& setting, const Case& subject, const std::vector<Json>& rows) {
  Json all = head_of(setting);
  all.update(Json::object({{"collective", name(subject.collective())},
                           {"ranks", subject.ranks()},
                           {"hosts", hosts_of(subject)},
                           {"type", name(setting.type)},
                           {"window", setting.command.window},
                           {"rows", rows}}));
  cli::print(all);
  return 0;
}

int one(const Setting& setting, const Case& subject, const Algorithm& algorithm) {
  Forecast found = forecast(setting, subject, algorithm);
  if (!found.refused.empty()) throw Error(ErrorCode::unsupported, found.refused);
  std::optional<CriticalPath> path;
  if (found.prediction.steps <= most_path_steps) {
    Setting same = setting;
    same.segment = found.segment;
    same.best_segment = false;
    same.command.calls = 1;
    path = path_of(*forecast(same, subject, algorithm, true).prediction.timeline);
  }
  if (setting.command.json) return print_json(setting, subject, {json_of(found, subject, path)});
  fmt::print("{} by {}{}, {} ranks on {}\n{}\n\n", subject.text(), algorithm.name,
             found.segment > 0 ? fmt::format(", pieces of {}", human_bytes(found.segment)) : "",
             subject.ranks(), counted(hosts_of(subject), "host"), summary(setting.network));
  print(found, path);
  return 0;
}

int several(const Setting& setting, const Case& subject) {
  std::vector<Forecast> found;
  for (const Algorithm* algorithm : setting.algorithms(subject.problem)) {
    found.push_back(forecast(setting, subject, *algorithm));
  }
  std::stable_sort(found.begin(), found.end(), [](const Forecast& a, const Forecast& b) {
    if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
    return a.prediction.total < b.prediction.total;
  });
  if (setting.command.json) {
    const auto row = [&](const Forecast& one) { return json_of(one, subject, {}); };
    return print_json(setting, subject, mapped(found, row));
  }
  fmt::print("{}, {} ranks on {}\n{}\n\n", subject.text(), subject.ranks(),
             counted(hosts_of(subject), "host"), summary(setting.network));
  const Table table({{"algorithm", -24},
                     {"segment", 10},
                     {"time", 12},
                     {"median rank", 12},
                     {"first rank", 12},
                     {"messages", 10},
                     {"host link", 12}});
  fmt::print("{}", table.head());
  for (const Forecast& f : found) {
    if (!f.refused.empty()) {
      fmt::print("{:<24} {}\n", f.algorithm->name, f.refused);
      continue;
    }
    const Spread spread = spread_of(f.prediction.finish);
    const HostBytes most = most_bytes(f.prediction);
    fmt::print("{}",
               table.line(f.algorithm->name, f.segment > 0 ? human_bytes(f.segment) : "-",
                          time(spread.most), time(spread.median), time(spread.least),
                          f.prediction.messages, human_bytes(std::max(most.sent, most.received))));
  }
  return 0;
}

/// A user's own schedules.
int own(const Setting& setting) {
  auto schedules = std::make_shared<std::vector<Schedule>>(setting.command.data.file_schedules());
  const Case subject = schedule_case(*schedules, setting.type, OpKind::sum);
  SimulateOptions options;
  options.hosts = setting.hosts(static_cast<int>(schedules->size()));
  options.window = setting.command.window;
  options.timeline = true;
  Forecast found;
  const double begin = now();
  found.prediction = baton::simulate(schedules, setting.type_bytes(), setting.network, options);
  found.seconds = now() - begin;
  const CriticalPath path = path_of(*found.prediction.timeline);
  if (setting.command.json) {
    Json all = head_of(setting);
    all.update(Json::object({{"schedule", setting.command.data.file()},
                             {"ranks", subject.ranks()},
                             {"rows", std::vector<Json>{json_of(found, subject, path)}}}));
    cli::print(all);
    return 0;
  }
  fmt::print("{}, {} ranks\n{}\n\n", setting.command.data.file(), subject.ranks(),
             summary(setting.network));
  print(found, path);
  return 0;
}

int run(const SimulateCommand& command, Launch& launch) {
  if (command.measure > 0) return measured(command, launch);
  if (launch.rank() != 0) return 0;
  if (command.data.sizes().size() != 1)
    refuse("--bytes: expected one size, unless with --measure, found several");
  const Setting setting(command);
  if (!command.data.file().empty()) return own(setting);
  if (!command.sweep.empty()) return sweep(setting);
  const Collective collective = collective_named(command.data.collective);
  const Case subject = setting.subject(collective, command.ranks(), command.data.sizes().front());
  if (command.data.algorithm == "all") return several(setting, subject);
  return one(setting, subject, *setting.algorithms(subject.problem).front());
}

}  // namespace

void add_simulate(CommandLine& program) {
  const auto [set, options] = program.add_command(
      "simulate",
      "Predict the time of a collective on a network, by simulating its schedule on all ranks",
      run);
  const CollectiveOptionSet data(set, options->data);
  const Option collective = data.collective(" (the default)");
  const Option algorithm =
      data.algorithm("by name, or all that serve the problem (default: the library chooses)");
  const Option ranks = data.ranks("number of ranks (default: of --hosts, else 8)", 1 << 20);
  const Option bytes = data.bytes(" (default 1M)");
  std::string names;
  for (const std::string& name : shipped_networks()) names += (names.empty() ? "" : ", ") + name;
  set.add("--network", options->network,
          "a file (baton calibrate writes one), or one of\n" + names +
              "\n(default shared-memory; format: lib/simulate/README.md)")
      .form("FILE");
  const Option hosts = data.hosts();
  const Option per_host =
      set.add("--per-host", options->per_host,
              "number of ranks on each host, 0: all on one (default: the network's)")
          .form("K")
          .range(0, 1 << 20)
          .excludes({hosts});
  const Option segment = data.segment(
      "bytes per message piece, 0: not cut, best: the one with the least predicted time\n"
      "(default: the library chooses)");
  const Option window =
      set.add("--window", options->window, "messages in flight on one channel (default 2)")
          .form("W")
          .range(1, 32);
  const Option root = data.root();
  data.type();
  const Option sweep =
      set.add("--sweep", options->sweep,
              "ranks=FIRST:LAST or bytes=FIRST:LAST, doubling: times of all algorithms, or of\n"
              "the named one, and the best ones with their ranges")
          .form("WHAT");
  const Option calls = set.add("--calls", options->calls,
                               "calls in a row; times, messages and bytes are per call (default 1)")
                           .form("N")
                           .range(1, 1'000'000);
  std::vector<Option> not_measured = data.files_and_goal(
      {collective, algorithm, ranks, bytes, segment, root, sweep, calls, data.registry()});
  not_measured.insert(not_measured.end(), {sweep, hosts, per_host, window, calls});
  const Option measure =
      set.add("--measure", options->measure,
              "also run it this many times, on the ranks of mpirun or on threads, and print\n"
              "predicted and measured times; collective may be all, --bytes a range")
          .form("RUNS")
          .range(1, 1'000'000)
          .excludes(not_measured);
  set.add("--factor", options->factor, "ratio of each size to the one before (default 2)")
      .form("N")
      .range(2, 1 << 20)
      .needs(measure);
  add_json(set, options->json, "; scripts/plot draws a sweep");
  add_progress(set, options->progress);
  set.footer(
      "Examples:\n"
      "  baton simulate all_reduce --algorithm circulant --ranks 65536 --network infiniband-100g\n"
      "  baton simulate all_reduce --algorithm all --ranks 64 --per-host 8 --bytes 16M\n"
      "  baton simulate broadcast --sweep bytes=8:64M --network virtual-cluster-1gbit\n"
      "  baton simulate all_reduce --sweep ranks=2:1024 --bytes 64K --json >sweep.json\n"
      "  scripts/plot sweep.json -o plots\n"
      "  mpirun -n 4 baton simulate all --algorithm all --bytes 16K:1M --measure 9");
}

}  // namespace baton::cli::simulate
