#include "plain_links.hpp"

#include <algorithm>
#include <numeric>

#include "cli/common/statistics.hpp"

namespace baton::cli::bench {

using measure::timed;

namespace {

constexpr std::int64_t window_bytes = 256 << 10;
constexpr int latency_samples = 9, exchange_samples = 5;
constexpr std::int64_t exchange_bytes[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20};

/// Small messages are many under way, so that they measure bandwidth and not latency.
int window_of(std::int64_t bytes) {
  return static_cast<int>(std::clamp<std::int64_t>(window_bytes / bytes, 1, 64));
}

}  // namespace

double ExchangeTimes::bandwidth() const { return static_cast<double>(bytes) / median(samples); }

double Link::bandwidth(std::int64_t bytes) const {
  const auto size = &ExchangeTimes::bytes;
  double best = std::ranges::max_element(exchanges, {}, size)->bandwidth();
  for (const ExchangeTimes& exchange : exchanges) {
    if (exchange.bytes >= bytes) best = std::max(best, exchange.bandwidth());
  }
  return best;
}

ExchangeTimes Probe::times() const {
  ExchangeTimes times{across, bytes, samples};
  for (double& seconds : times.samples) seconds /= messages;
  return times;
}

Rings::Rings(World& world) : world_(world) {
  world_.together([&] { messages_ = world_.plain_messages(); });
  const auto host_of = [&](int rank) { return world.host_of(rank); };
  std::vector<int> all(world.hosts().size());  // host by host
  std::iota(all.begin(), all.end(), 0);
  std::ranges::stable_sort(all, {}, host_of);
  std::vector<int> own;  // ranks of this rank's host
  std::ranges::copy(std::ranges::equal_range(all, host_of(world.rank()), {}, host_of),
                    std::back_inserter(own));
  for (std::size_t i = 1; i < all.size(); ++i) {
    const bool across = host_of(all[i]) != host_of(all[i - 1]);
    std::optional<Ring>& made = across ? across_ : within_;
    if (made) continue;
    made = Ring{all[i - 1], all[i]};
    const std::vector<int>& ring = across ? all : own;
    if (ring.size() < 2) continue;
    const auto at = std::find(ring.begin(), ring.end(), world.rank());
    made->next = at + 1 == ring.end() ? ring.front() : *(at + 1);
    made->previous = at == ring.begin() ? ring.back() : *(at - 1);
  }
}

Links Rings::measure(double seconds) {
  Links links;
  if (within_) links.within = link(*within_, seconds);
  if (across_) links.across = link(*across_, seconds);
  return links;
}

std::vector<Probe> Rings::probes(std::int64_t bytes) {
  std::vector<Probe> probes;
  if (bytes == 0) return probes;
  if (within_) probes.push_back(probe(*within_, bytes));
  if (across_) probes.push_back(probe(*across_, bytes));
  if (across_) probes.back().across = true;
  return probes;
}

Probe Rings::probe(const Ring& ring, std::int64_t bytes) {
  const int window = window_of(bytes);
  const auto each = static_cast<std::size_t>(bytes);
  world_.together([&] { messages_->reserve(each * static_cast<std::size_t>(window)); });
  const auto exchange = [this, ring, each, window] {
    if (ring.next >= 0) messages_->exchange(ring.next, ring.previous, each, window);
  };
  Probe probe;
  probe.bytes = bytes;
  probe.messages = window;
  probe.seconds = [this, exchange](int calls) { return timed(world_, exchange, calls); };
  return probe;
}

Link Rings::link(const Ring& ring, double seconds) {
  Link link;
  link.latencies = latencies(ring, seconds);
  link.latency = median(link.latencies);
  for (const std::int64_t bytes : exchange_bytes) {
    Probe one = probe(ring, bytes);
    one.calls = measure::calls_filling(one.seconds, seconds);
    for (int i = 0; i < exchange_samples; ++i) one.sample();
    link.exchanges.push_back(one.times());
  }
  return link;
}

/// Of ping-pong between two ranks.
std::vector<double> Rings::latencies(const Ring& ring, double seconds) {
  world_.together([&] { messages_->reserve(latency_bytes); });
  const auto one_way = [&](int trips) {
    double seconds = 0;
    world_.together([&] {
      seconds = messages_->ping_pong(world_.rank(), ring.first, ring.second, latency_bytes, trips);
      messages_->sleepy_barrier();
    });
    return world_.max(seconds);
  };
  one_way(10);
  const double estimate = one_way(100);
  const int trips = static_cast<int>(std::clamp(seconds / (2 * estimate), 10.0, 1e6));
  std::vector<double> samples;
  for (int i = 0; i < latency_samples; ++i) samples.push_back(one_way(trips));
  return samples;
}

}  // namespace baton::cli::bench
