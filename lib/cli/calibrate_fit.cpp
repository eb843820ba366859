#include <algorithm>
#include <cmath>

#include "calibrate_measure.hpp"

// From samples to the parameters of a network.

namespace baton::cli {
namespace {

TimeTable scaled(const TimeTable& table, double start, double rest) {
  if (table.points().empty()) return table;
  std::vector<TimeTable::Point> points(table.points().begin(), table.points().end());
  const double zero = points.front().ns;
  for (auto& point : points) point.ns = std::round(start * zero + rest * (point.ns - zero));
  return TimeTable(points);
}

}  // namespace

/// The tables of a level from what was measured.
void Calibration::fit(NetworkLevel& level, const std::vector<Sample>& samples,
                      bool processors_copy) const {
  std::vector<TimeTable::Point> send, receive, wire;
  const auto add = [](std::vector<TimeTable::Point>& points, std::int64_t bytes, double ns) {
    const double before = points.empty() ? 0 : points.back().ns;
    points.push_back({points.empty() ? 0 : bytes, std::max(before, std::round(ns))});
  };
  for (const Sample& s : samples) {
    if (s.bytes <= level.eager) add(send, s.bytes, s.send);
    if (s.bytes <= level.eager) add(receive, s.bytes, s.receive);
  }
  const Sample& small = samples.front();
  const double overhead = small.send + small.receive;
  if (processors_copy) {
    // The receiver copies a long message from its sender's memory.
    for (const Sample& s : samples) {
      if (s.bytes > level.eager) add(receive, s.bytes, s.gap);
    }
    add(send, samples.back().bytes, send.back().ns);
  }
  level.send = TimeTable(send);
  level.receive = TimeTable(receive);
  if (processors_copy) {
    level.latency = std::max<std::int64_t>(0, std::llround(small.one_way - overhead));
    return;
  }
  // Where processors set the pace, the gap says no more of the wire than that it is no slower.
  const double busiest = std::max(small.send, small.receive + static_cast<double>(level.post));
  add(wire, 0, small.gap > 1.1 * busiest ? small.gap - busiest : 0);
  level.latency =
      std::max<std::int64_t>(0, std::llround(small.one_way - overhead - wire.front().ns));
  for (const Sample& s : samples) {
    if (s.bytes == small.bytes) continue;
    const auto busy =
        static_cast<double>(std::max(level.send.of(s.bytes), level.receive.of(s.bytes)));
    const double passing = s.one_way - overhead - static_cast<double>(level.latency);
    add(wire, s.bytes, s.gap > 1.1 * busy ? s.gap : std::min(s.gap, passing));
  }
  level.wire = TimeTable(wire);
}

/// A long message that is alone saves the time of the bytes that the bucket lets pass.
void Calibration::fit_burst(NetworkLevel& level, const std::vector<Sample>& samples) const {
  const Sample& last = samples.back();
  const Sample& before = *(samples.end() - 2);
  const double slope = (last.gap - before.gap) / static_cast<double>(last.bytes - before.bytes);
  const auto fixed = static_cast<double>(level.latency + level.send.of(0) + level.receive.of(0));
  const auto quick_one = std::find_if(samples.begin(), samples.end(),
                                      [](const Sample& s) { return s.bytes == 16 << 10; });
  for (const Sample& s : samples) {
    if (s.bytes != 64 << 10 || slope <= 0) continue;
    const double shake =
        s.bytes > level.eager ? 2.0 * static_cast<double>(level.latency + level.handshake) : 0;
    const double saved = s.gap - (s.one_way - fixed - shake);
    const auto burst = static_cast<std::int64_t>(saved / slope);
    if (burst < 4 << 10) return;
    level.burst = burst;
    level.burst_per_byte = std::max(0.0, (quick_one->one_way - samples.front().one_way) /
                                             static_cast<double>(quick_one->bytes));
  }
}

void Calibration::share(Network& network, NetworkLevel& level) {
  constexpr std::int64_t small = 8, large = 64 << 10;
  const auto processors = static_cast<double>(network.processors) / world_.size();
  const auto factor = [&](std::int64_t bytes, double zero) {
    const double time = exchanging(bytes);
    const auto post = static_cast<double>(level.post);
    const double own = static_cast<double>(level.send.of(bytes) + level.receive.of(bytes)) - zero;
    const bool bound = time > 1.05 * static_cast<double>(level.wire.of(bytes));
    return own > 0 && bound ? std::max(1.0, (time * processors - post - zero) / own) : 1.0;
  };
  const double start = factor(small, 0);
  const double zero = start * static_cast<double>(level.send.of(0) + level.receive.of(0));
  const double rest = factor(large, zero);
  level.send = scaled(level.send, start, rest);
  level.receive = scaled(level.receive, start, rest);
}

}  // namespace baton::cli
