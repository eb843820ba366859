#include "simulation.hpp"

#include <fmt/core.h>

#include "cli/common/text.hpp"
#include "select/select.hpp"

namespace baton::cli::simulate {
namespace {

/// Times, messages and bytes of so many calls become those of one.
void share(Prediction& prediction, std::int64_t calls) {
  for (std::int64_t& time : prediction.finish) time /= calls;
  for (HostBytes& host : prediction.hosts) {
    host.sent /= calls;
    host.received /= calls;
  }
  prediction.total /= calls;
  prediction.messages /= calls;
  prediction.steps /= calls;
  prediction.bytes_within /= calls;
}

Forecast simulated(const Setting& setting, const Case& subject,
                   const selecting::Selection& selection, bool timeline) {
  Forecast forecast;
  forecast.algorithm = selection.algorithm;
  forecast.segment = selection.segment;
  SimulateOptions options;
  options.hosts = subject.problem.hosts;
  options.window = setting.command.window;
  options.calls = setting.command.calls;
  options.segment = selecting::pieces(selection, setting.type_bytes());
  options.timeline = timeline;
  const double begin = now();
  try {
    const auto schedule_of = [&](int rank) {
      return selecting::whole(selection, subject.problem.at(rank), setting.type_bytes());
    };
    forecast.prediction = baton::simulate(subject.problem.size, schedule_of, setting.type_bytes(),
                                          setting.network, options);
    share(forecast.prediction, options.calls);
  } catch (const Error& error) {
    if (error.code != ErrorCode::unsupported) throw;
    forecast.refused = error.what();
  }
  forecast.seconds = now() - begin;
  return forecast;
}

}  // namespace

Setting::Setting(const SimulateCommand& command)
    : registry(command.data.registry()),
      network(network_named(command.network)),
      command(command),
      type(command.data.datatype()),
      best_segment(command.data.segment == "best") {
  if (!best_segment) segment = command.data.segment_bytes();
}

std::shared_ptr<const Hosts> Setting::hosts(int ranks) const {
  if (!command.data.hosts.empty()) return command.data.grouping(ranks);
  const int each = command.per_host >= 0 ? command.per_host : network.ranks_per_host;
  if (each == 0 || each >= ranks) return nullptr;
  std::vector<int> host_of(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) host_of[static_cast<std::size_t>(r)] = r / each;
  return host_grouping(host_of);
}

Case Setting::subject(Collective collective, int ranks, std::int64_t bytes) const {
  if (command.data.root >= ranks) {
    refuse(fmt::format("expected a root from 0 to {}, found {}", ranks - 1, command.data.root));
  }
  Case subject =
      sized_cases(collective, ranks, {bytes}, type, OpKind::sum, command.data.root_rank()).front();
  subject.problem.hosts = hosts(ranks);
  return subject;
}

std::vector<const Algorithm*> Setting::algorithms(const Problem& problem) const {
  if (command.data.algorithm.empty()) {
    return {selecting::select(registry, problem, type_bytes(), {"", segment}, {}).algorithm};
  }
  if (command.data.algorithm == "all") {
    auto all = registry.of(problem.collective);
    std::erase_if(all, [&](const Algorithm* a) { return !refusal(*a, problem).empty(); });
    return all;
  }
  return {&selecting::serving(registry, problem, command.data.algorithm)};
}

Forecast forecast(const Setting& setting, const Case& subject, const Algorithm& algorithm,
                  bool timeline) {
  if (!setting.best_segment) {
    const selecting::Selection selection =
        selecting::select(setting.registry, subject.problem, setting.type_bytes(),
                          {algorithm.name, setting.segment}, {});
    return simulated(setting, subject, selection, timeline);
  }
  Forecast best;
  for (const std::int64_t segment : selecting::segment_candidates()) {
    if (algorithm.pipelined && segment == 0) continue;
    if (best.algorithm && segment >= subject.bytes()) continue;
    Forecast next = simulated(setting, subject, {&algorithm, segment, ""}, timeline);
    const double seconds = best.seconds + next.seconds;
    const bool better = !best.algorithm || !best.refused.empty() ||
                        (next.refused.empty() && next.prediction.total < best.prediction.total);
    if (better) best = std::move(next);
    best.seconds = seconds;
  }
  return best;
}

}  // namespace baton::cli::simulate
