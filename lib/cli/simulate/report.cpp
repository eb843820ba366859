#include "report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/common/json.hpp"
#include "cli/common/text.hpp"

namespace baton::cli::simulate {
namespace {

constexpr std::size_t most_hosts = 64;  // whose bytes are listed

double events_per_second(const Prediction& p) {
  return p.seconds > 0 ? static_cast<double>(p.events) / p.seconds : 0;
}

std::string text(const CriticalPath& path) {
  constexpr std::size_t most = 12;
  std::string text = counted(path.messages, "message");
  if (path.folds > 0) text += ", " + counted(path.folds, "fold");
  if (path.copies > 0) text += fmt::format(", {} copies", path.copies);
  text += ", by ranks";
  for (std::size_t i = 0; i < std::min(path.ranks.size(), most); ++i) {
    text += fmt::format("{}{}", i == 0 ? " " : " > ", path.ranks[i]);
  }
  if (path.ranks.size() > most) text += fmt::format(" > … ({} more)", path.ranks.size() - most);
  return text;
}

}  // namespace

Spread spread_of(std::vector<std::int64_t> finish) {
  std::sort(finish.begin(), finish.end());
  return {finish.front(), finish[finish.size() / 2], finish.back()};
}

HostBytes most_bytes(const Prediction& prediction) {
  HostBytes most;
  for (const HostBytes& host : prediction.hosts) {
    most.sent = std::max(most.sent, host.sent);
    most.received = std::max(most.received, host.received);
  }
  return most;
}

CriticalPath path_of(Timeline timeline) {
  finish(timeline);
  CriticalPath path;
  for (const std::uint32_t e : critical_path(timeline)) {
    const Event& event = timeline.events[e];
    if (path.ranks.empty() || path.ranks.back() != event.rank) path.ranks.push_back(event.rank);
    if (event.kind == StepKind::recv) ++path.messages;
    if (event.kind == StepKind::fold) ++path.folds;
    if (!event.message() && event.kind != StepKind::fold) ++path.copies;
  }
  return path;
}

Json json_of(const Forecast& forecast, const Case& subject, const CriticalPath* path) {
  const Prediction& p = forecast.prediction;
  if (!forecast.refused.empty()) {
    return Json::object({{"algorithm", forecast.algorithm->name}, {"refused", forecast.refused}});
  }
  const Spread spread = spread_of(p.finish);
  Json hosts = Json::array();
  if (p.hosts.size() <= most_hosts) {
    for (const HostBytes& host : p.hosts) {
      hosts.push_back(Json::object({{"sent", host.sent}, {"received", host.received}}));
    }
  }
  const HostBytes most = most_bytes(p);
  return Json::object(
      {{"algorithm", forecast.algorithm ? Json(forecast.algorithm->name) : Json()},
       {"segment_bytes", forecast.segment},
       {"bytes", subject.bytes()},
       {"time_ns", p.total / forecast.calls},
       {"finish_ns",
        Json::object({{"min", spread.least}, {"median", spread.median}, {"max", spread.most}})},
       {"messages", p.messages},
       {"steps", p.steps},
       {"bytes_within_hosts", p.bytes_within},
       {"host_link_bytes", hosts},
       {"most_host_link_bytes", Json::object({{"sent", most.sent}, {"received", most.received}})},
       {"critical_path", path ? Json::object({{"messages", path->messages},
                                              {"folds", path->folds},
                                              {"copies", path->copies},
                                              {"ranks", path->ranks}})
                              : Json()},
       {"events", p.events},
       {"simulating_seconds", p.seconds},
       {"seconds", forecast.seconds},
       {"events_per_second", events_per_second(p)}});
}

void print(const Forecast& forecast, const CriticalPath* path) {
  const Prediction& p = forecast.prediction;
  const Spread spread = spread_of(p.finish);
  const auto time = [](std::int64_t ns) { return human_time(static_cast<double>(ns) * 1e-3); };
  fmt::print("time           {}\n", time(p.total / forecast.calls));
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

}  // namespace baton::cli::simulate
