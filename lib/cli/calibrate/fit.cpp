#include <algorithm>
#include <cmath>

#include "calibration.hpp"

// From samples to the parameters of a network.

namespace baton::cli::calibrate {

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
    if (samples.back().bytes > level.eager) add(send, samples.back().bytes, send.back().ns);
  }
  level.send = TimeTable(send);
  level.receive = TimeTable(receive);
  if (processors_copy) {
    level.latency = std::max<std::int64_t>(0, std::llround(small.one_way - overhead));
    return;
  }
  // If processors set the pace, the gap says only that the wire is no slower.
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

/// A message that is alone saves the time of the bytes that the bucket lets pass.
void Calibration::fit_burst(NetworkLevel& level, const std::vector<Sample>& samples) const {
  const auto of_size = [&](std::int64_t bytes) {
    return *std::find_if(samples.begin(), samples.end(),
                         [&](const Sample& s) { return s.bytes == bytes; });
  };
  const Sample longest = samples.back(), before = *(samples.end() - 2), quick = of_size(4 << 10),
               alone = of_size(32 << 10);
  const double lasting =
      (longest.gap - before.gap) / static_cast<double>(longest.bytes - before.bytes);
  const double burst =
      std::max(0.0, (quick.one_way - samples.front().one_way) / static_cast<double>(quick.bytes));
  if (alone.bytes > level.eager || burst > 0.8 * lasting) return;
  const double passing = alone.one_way - samples.front().one_way;
  const double saved = static_cast<double>(alone.bytes) * lasting - passing;
  const auto bytes = static_cast<std::int64_t>(saved / (lasting - burst));
  if (bytes < quick.bytes) return;
  level.burst = bytes;
  level.burst_per_byte = burst;
}

/// The processors' time for a message if ranks share processors: all ranks exchange messages, which
/// keeps all processors at work unless wires hold them up.
void Calibration::share(const NetworkLevel& level, std::vector<Sample>& samples) {
  says_("all ranks at once");
  const Sample& large = *std::find_if(samples.rbegin(), samples.rend(), [&](const Sample& s) {
    return s.bytes <= std::min<std::int64_t>(level.eager, 32 << 10);
  });
  const double share = static_cast<double>(processors_) / world_.size();
  const double post = static_cast<double>(level.post);
  const double start = std::max(0.0, share * exchanging(samples.front().bytes) - post);
  const double busy = exchanging(large.bytes);
  const auto bytes = static_cast<double>(large.bytes);
  const double per_byte = busy > 1.25 * large.gap
                              ? std::max(0.0, share * busy - post - start) / bytes
                              : 2 * static_cast<double>(copy_.of(large.bytes)) / bytes;
  for (Sample& s : samples)
    s.send = s.receive = (start + per_byte * static_cast<double>(s.bytes)) / 2;
}

}  // namespace baton::cli::calibrate
