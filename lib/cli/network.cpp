#include "network.hpp"

#include <algorithm>
#include <numeric>

#include "clock.hpp"
#include "sample.hpp"
#include "statistics.hpp"

namespace baton::cli {
namespace {

constexpr std::int64_t window_bytes = 256 << 10;
constexpr std::int64_t latency_bytes = 8;
constexpr int latency_samples = 9, pace_samples = 5;
constexpr std::int64_t pace_bytes[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20};

/// Small messages are many under way, so that they measure bandwidth and not latency.
int window_of(std::int64_t bytes) {
  return static_cast<int>(std::clamp<std::int64_t>(window_bytes / bytes, 1, 64));
}

Json path_json(const std::optional<Path>& path) {
  if (!path) return Json::null();
  std::vector<Json> paces;
  for (const Pace& pace : path->paces) {
    paces.push_back(Json::object({{"bytes", pace.bytes},
                                  {"GBps_each_way", pace.bandwidth() * 1e-9},
                                  {"samples_us", samples_json(pace.samples)}}));
  }
  return Json::object({{"latency_us", path->latency * 1e6},
                       {"latency_bytes", latency_bytes},
                       {"latency_samples_us", samples_json(path->latencies)},
                       {"exchanges", Json::array(paces)}});
}

}  // namespace

double Pace::bandwidth() const { return static_cast<double>(bytes) / median(samples); }

double Path::bandwidth(std::int64_t bytes) const {
  const Pace& largest = *std::max_element(
      paces.begin(), paces.end(), [](const Pace& a, const Pace& b) { return a.bytes < b.bytes; });
  double best = largest.bandwidth();
  for (const Pace& pace : paces) {
    if (pace.bytes >= bytes) best = std::max(best, pace.bandwidth());
  }
  return best;
}

Json Network::json() const {
  return Json::object({{"within_host", path_json(within)}, {"across_hosts", path_json(across)}});
}

Rings::Rings(World& world) : world_(world) {
  world_.together([&] { messages_ = world_.plain_messages(); });
  const std::vector<int>& hosts = world.hosts();
  const auto host_of = [&](int rank) { return hosts[static_cast<std::size_t>(rank)]; };
  std::vector<int> all(hosts.size());  // host by host
  std::iota(all.begin(), all.end(), 0);
  std::stable_sort(all.begin(), all.end(), [&](int a, int b) { return host_of(a) < host_of(b); });
  std::vector<int> own;  // ranks of this rank's host
  std::copy_if(all.begin(), all.end(), std::back_inserter(own),
               [&](int rank) { return host_of(rank) == host_of(world.rank()); });
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

Network Rings::measure(double seconds) {
  Network network;
  if (within_) network.within = path(*within_, seconds);
  if (across_) network.across = path(*across_, seconds);
  return network;
}

std::vector<Rings::Probe> Rings::probes(std::int64_t bytes) {
  std::vector<Probe> probes;
  if (bytes == 0) return probes;
  if (within_) probes.push_back(probe(*within_, bytes));
  if (across_) probes.push_back(probe(*across_, bytes));
  if (across_) probes.back().across = true;
  return probes;
}

Rings::Probe Rings::probe(const Ring& ring, std::int64_t bytes) {
  const int window = window_of(bytes);
  const auto each = static_cast<std::size_t>(bytes);
  world_.together([&] { messages_->reserve(each * static_cast<std::size_t>(window)); });
  return {false, bytes, window, [this, ring, each, window] {
            if (ring.next >= 0) messages_->exchange(ring.next, ring.previous, each, window);
          }};
}

Path Rings::path(const Ring& ring, double seconds) {
  Path path;
  path.latencies = latencies(ring, seconds);
  path.latency = median(path.latencies);
  for (const std::int64_t bytes : pace_bytes) {
    const Probe one = probe(ring, bytes);
    const int repeats = repeats_for(world_, one.run, seconds);
    Pace pace{bytes, {}};
    for (int i = 0; i < pace_samples; ++i) {
      pace.samples.push_back(timed(world_, one.run, repeats) / repeats / one.messages);
    }
    path.paces.push_back(std::move(pace));
  }
  return path;
}

/// Of ping-pong between two ranks.
std::vector<double> Rings::latencies(const Ring& ring, double seconds) {
  world_.together([&] { messages_->reserve(latency_bytes); });
  const int rank = world_.rank();
  const auto one_way = [&](int trips) {
    double elapsed = 0;
    world_.together([&] {
      const double begin = now();
      for (int i = 0; i < trips && (rank == ring.first || rank == ring.second); ++i) {
        if (rank == ring.first) messages_->send(ring.second, latency_bytes);
        messages_->recv(rank == ring.first ? ring.second : ring.first, latency_bytes);
        if (rank == ring.second) messages_->send(ring.first, latency_bytes);
      }
      if (rank == ring.first) elapsed = now() - begin;
      messages_->sleepy_barrier();
    });
    return world_.max(elapsed) / (2 * trips);
  };
  one_way(10);
  const double estimate = one_way(100);
  const int trips = static_cast<int>(std::clamp(seconds / (2 * estimate), 10.0, 1e6));
  std::vector<double> samples;
  for (int i = 0; i < latency_samples; ++i) samples.push_back(one_way(trips));
  return samples;
}

}  // namespace baton::cli
