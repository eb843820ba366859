#include "forecast.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "../select/select.hpp"
#include "clock.hpp"
#include "jobs.hpp"

namespace baton::cli {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

Forecast simulated(const Setting& setting, const Exercise& exercise,
                   const selecting::Selection& selection, bool timeline) {
  Forecast forecast;
  forecast.algorithm = selection.algorithm;
  forecast.segment = selection.segment;
  SimulateOptions options;
  options.hosts = exercise.problem.hosts;
  options.window = setting.command.window;
  options.calls = forecast.calls = setting.command.calls;
  options.segment = selecting::pieces(selection, setting.type_bytes());
  options.timeline = timeline;
  const double begin = now();
  try {
    const auto schedule_of = [&](int rank) {
      return selecting::whole(selection, exercise.problem.at(rank), setting.type_bytes());
    };
    forecast.prediction = simulate(exercise.problem.size, schedule_of, setting.type_bytes(),
                                   setting.network, options);
  } catch (const Error& error) {
    if (error.code != ErrorCode::unsupported) throw;
    forecast.refused = error.what();
  }
  forecast.seconds = now() - begin;
  return forecast;
}

}  // namespace

Setting::Setting(const SimulateCommand& command)
    : network(network_named(command.network)),
      command(command),
      type(datatype_named(command.type)),
      segment(command.segment == "best" ? best_segment : segment_of(command.segment).value_or(-1)) {
}

std::shared_ptr<const Hosts> Setting::hosts(int ranks) const {
  if (!command.hosts.empty()) {
    const Hosts hosts = parse_hosts(command.hosts);
    if (hosts.size() != ranks) {
      refuse(fmt::format("--hosts: expected the hosts of {} ranks, found those of {}", ranks,
                         hosts.size()));
    }
    return host_grouping(hosts.of());
  }
  const int each = command.per_host >= 0 ? command.per_host : network.ranks_per_host;
  if (each == 0 || each >= ranks) return nullptr;
  std::vector<int> host_of(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) host_of[static_cast<std::size_t>(r)] = r / each;
  return host_grouping(host_of);
}

Exercise Setting::exercise(Collective collective, int ranks, std::int64_t bytes) const {
  if (command.root >= ranks) {
    refuse(fmt::format("expected a root from 0 to {}, found {}", ranks - 1, command.root));
  }
  const auto each = static_cast<std::int64_t>(type_bytes());
  const std::int64_t elements = bytes == 0 ? 0 : std::max<std::int64_t>(1, bytes / each);
  Exercise exercise = flat_exercise(collective, ranks, elements, type, OpKind::sum, command.root);
  exercise.asked = bytes;
  exercise.problem.hosts = hosts(ranks);
  return exercise;
}

std::vector<const Algorithm*> Setting::algorithms(const Problem& problem) const {
  if (command.algorithm.empty()) {
    return {selecting::select(registry, problem, type_bytes(), {}, {}).algorithm};
  }
  std::vector<const Algorithm*> serving;
  if (command.algorithm == "all") {
    for (const Algorithm* algorithm : registry.of(problem.collective)) {
      if (refusal(*algorithm, problem).empty()) serving.push_back(algorithm);
    }
    return serving;
  }
  const Algorithm& algorithm = registry.find(problem.collective, command.algorithm);
  if (const std::string why = refusal(algorithm, problem); !why.empty()) {
    refuse(fmt::format("{}: algorithm {} {}", name(problem.collective), algorithm.name, why));
  }
  return {&algorithm};
}

Forecast forecast(const Setting& setting, const Exercise& exercise, const Algorithm& algorithm,
                  bool timeline) {
  if (setting.segment != best_segment) {
    Choice choice{algorithm.name};
    if (setting.segment >= 0) choice.segment = setting.segment;
    selecting::Selection selection =
        selecting::select(setting.registry, exercise.problem, setting.type_bytes(), choice, {});
    return simulated(setting, exercise, selection, timeline);
  }
  Forecast best;
  for (const std::int64_t segment : selecting::segment_candidates()) {
    if (algorithm.pipelined && segment == 0) continue;
    if (best.algorithm && segment >= exercise.bytes()) continue;
    Forecast next = simulated(setting, exercise, {&algorithm, segment, ""}, timeline);
    const double seconds = best.seconds + next.seconds;
    const bool better = !best.algorithm || !best.refused.empty() ||
                        (next.refused.empty() && next.prediction.total < best.prediction.total);
    if (better) best = std::move(next);
    best.seconds = seconds;
  }
  return best;
}

std::string human_time(double us) {
  if (us < 1e3) return fmt::format("{:.3g} us", us);
  if (us < 1e6) return fmt::format("{:.4g} ms", us * 1e-3);
  return fmt::format("{:.4g} s", us * 1e-6);
}

}  // namespace baton::cli
