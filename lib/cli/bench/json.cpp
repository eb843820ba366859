#include "json.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/common/text.hpp"

namespace baton::cli::bench {
namespace {

Json json_of(const Side& side, double lower_bound) {
  const bool known = side.ours && !side.algorithm.empty();
  const Interval time = median_interval(side.samples);
  return Json::object({
      {"name", side.name},
      {"ours", side.ours},
      {"through", side.ours ? Json(through(side)) : Json()},
      {"algorithm", known ? Json(side.algorithm) : Json()},
      {"segment_bytes", known ? Json(side.segment) : Json()},
      {"time_us", time.median * 1e6},
      {"time_low_us", time.low * 1e6},
      {"time_high_us", time.high * 1e6},
      {"spread_us", spread(side.samples) * 1e6},
      {"limit_share", lower_bound > 0 ? Json(lower_bound / time.median) : Json()},
      {"checked", side.check.checks},
      {"wrong", side.check.wrong},
      {"way", side.way.empty() ? Json() : Json(side.way)},
      {"calls_per_sample", side.calls},
      {"samples_us", in_microseconds(side.samples)},
  });
}

Json json_of(const Ratio& ratio, const std::vector<Side>& sides) {
  return Json::object({{"ours", sides[ratio.ours].name},
                       {"against", sides[ratio.theirs].name},
                       {"ratio", ratio.interval.median},
                       {"low", ratio.interval.low},
                       {"high", ratio.interval.high},
                       {"coverage", ratio.interval.coverage}});
}

Json json_of(const ExchangeTimes& exchange) {
  return Json::object({{"bytes", exchange.bytes},
                       {"GBps_each_way", exchange.bandwidth() * 1e-9},
                       {"samples_us", in_microseconds(exchange.samples)}});
}

Json json_of(const std::optional<Link>& link) {
  if (!link) return Json();
  std::vector<Json> exchanges;
  for (const ExchangeTimes& exchange : link->exchanges) exchanges.push_back(json_of(exchange));
  return Json::object({{"latency_us", link->latency * 1e6},
                       {"latency_bytes", latency_bytes},
                       {"latency_samples_us", in_microseconds(link->latencies)},
                       {"exchanges", exchanges}});
}

}  // namespace

Json json_of(const BenchRow& row) {
  std::vector<Json> sides, ratios, exchanges;
  for (const Side& side : row.comparison.sides) sides.push_back(json_of(side, row.lower_bound));
  for (const Ratio& ratio : row.comparison.ratios) {
    ratios.push_back(json_of(ratio, row.comparison.sides));
  }
  for (const ExchangeTimes& exchange : row.comparison.exchanges) {
    exchanges.push_back(Json::object({{"across_hosts", exchange.across}}));
    exchanges.back().update(json_of(exchange));
  }
  const Collective collective = row.subject.collective();
  const std::int64_t bytes = row.subject.bytes();
  return Json::object({
      {"collective", name(collective)},
      {"asked_bytes", row.subject.asked},
      {"bytes", bytes},
      {"count", bytes == 0 ? 0 : row.subject.problem.count},
      {"type", name(row.subject.type)},
      {"op", reducing(collective) ? Json(name(row.subject.op)) : Json()},
      {"root", rooted(collective) ? Json(row.subject.problem.root) : Json()},
      {"bus_factor", row.subject.bus_factor()},
      {"calls_per_sample", row.comparison.calls},
      {"lower_bound_us", row.lower_bound > 0 ? Json(row.lower_bound * 1e6) : Json()},
      {"exchanges", exchanges},
      {"sides", sides},
      {"ratios", ratios},
  });
}

Json json_of(const std::vector<BenchRow>& rows) {
  std::vector<Json> all;
  for (const BenchRow& row : rows) all.push_back(json_of(row));
  return all;
}

Json json_of(const Links& links) {
  return Json::object(
      {{"within_host", json_of(links.within)}, {"across_hosts", json_of(links.across)}});
}

JsonFile::JsonFile(const std::string& path) : path_(path), stream_(path) {
  if (!stream_) refuse(fmt::format("--json: expected a file to write, found {}", path));
}

void JsonFile::write(const Json& json) {
  stream_ << text_of(json);
  stream_.close();
  if (!stream_) refuse(fmt::format("--json: expected to write {}, found it fail", path_));
}

}  // namespace baton::cli::bench
