#include "plain_links.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cli/common/statistics.hpp"
#include "cli/common/text.hpp"

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

/// The least k with base^k >= n.
int ceil_log(int base, int n) {
  int k = 0;
  for (std::int64_t power = 1; power < n; power *= base) ++k;
  return k;
}

/// Bytes that cross the link of the busiest host. Blocks belong to ranks, of which hosts may have
/// unequal numbers: `ranks[h]` each.
double host_bytes_of(const Case& subject, const std::vector<int>& hosts,
                     const std::vector<int>& ranks) {
  const auto n = static_cast<double>(subject.bytes());
  const auto size = static_cast<double>(hosts.size());
  const auto fewest = static_cast<double>(*std::min_element(ranks.begin(), ranks.end()));
  double most = 0;
  switch (subject.collective()) {
    case Collective::all_gather:      // a host receives what the others have
    case Collective::reduce_scatter:  // and sends what others shall have
      return n * (size - fewest) / size;
    case Collective::gather:
    case Collective::scatter: {
      const int host = hosts[static_cast<std::size_t>(subject.problem.root)];
      return n * (size - ranks[static_cast<std::size_t>(host)]) / size;
    }
    case Collective::all_to_all:
      for (const int p : ranks) most = std::max(most, n * p * (size - p) / size);
      return most;
    default:
      return n * bus_factor(subject.collective(), static_cast<double>(ranks.size()));
  }
}

}  // namespace

std::vector<double> Exchange::times() const {
  return mapped(samples, [&](double seconds) { return seconds / messages; });
}

double Exchange::bandwidth() const { return static_cast<double>(bytes) / median(times()); }

double Link::bandwidth(std::int64_t bytes) const {
  const auto size = &Exchange::bytes;
  double best = std::ranges::max_element(exchanges, {}, size)->bandwidth();
  for (const Exchange& exchange : exchanges) {
    if (exchange.bytes >= bytes) best = std::max(best, exchange.bandwidth());
  }
  return best;
}

Rings::Rings(World& world) : world_(world) {
  world_.together([&] { messages_ = world_.plain_messages(); });
  const auto host_of = [&](int rank) { return world.host_of(rank); };
  std::vector<int> all(world.hosts().size());  // host by host
  std::iota(all.begin(), all.end(), 0);
  std::ranges::stable_sort(all, {}, host_of);
  std::vector<int> own;  // ranks of this rank's host
  std::ranges::copy_if(all, std::back_inserter(own),
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

Links Rings::measure(double seconds) {
  Links links;
  if (within_) links.within = link(*within_, seconds);
  if (across_) links.across = link(*across_, seconds);
  return links;
}

std::vector<Exchange> Rings::probes(std::int64_t bytes) {
  std::vector<Exchange> probes;
  if (bytes == 0) return probes;
  if (within_) probes.push_back(probe(*within_, bytes));
  if (across_) probes.push_back(probe(*across_, bytes));
  if (across_) probes.back().across = true;
  return probes;
}

Exchange Rings::probe(const Ring& ring, std::int64_t bytes) {
  const int window = window_of(bytes);
  const auto each = static_cast<std::size_t>(bytes);
  world_.together([&] { messages_->reserve(each * static_cast<std::size_t>(window)); });
  const auto exchange = [this, ring, each, window] {
    if (ring.next >= 0) messages_->exchange(ring.next, ring.previous, each, window);
  };
  Exchange probe;
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
    Exchange one = probe(ring, bytes);
    one.calls = measure::calls_filling(one.seconds, seconds);
    for (int i = 0; i < exchange_samples; ++i) one.sample();
    link.exchanges.push_back(std::move(one));
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

Demand demand_of(const Case& subject, const std::vector<int>& hosts) {
  Demand demand;
  const int size = subject.ranks();
  const bool silent = subject.bytes() == 0 && subject.collective() != Collective::barrier;
  if (size == 1 || silent) return demand;
  // If blocks are exchanged, the busiest rank keeps its own; else somebody sends, or receives,
  // all.
  demand.rank_bytes = static_cast<double>(subject.bytes()) * subject.bus_factor();
  const Collective c = subject.collective();
  const bool scans = c == Collective::scan || c == Collective::exscan;
  const bool whole = c == Collective::broadcast || c == Collective::reduce || scans;
  demand.block = whole ? subject.bytes() : subject.bytes() / size;
  demand.rounds = ceil_log(2, size);
  demand.one_way = rooted(c) || scans;
  std::vector<int> ranks;  // of each host
  for (const int host : hosts) {
    ranks.resize(std::max(ranks.size(), static_cast<std::size_t>(host) + 1));
    ++ranks[static_cast<std::size_t>(host)];
  }
  if (ranks.size() > 1) {
    demand.host_bytes = host_bytes_of(subject, hosts, ranks);
    // In one round a host can tell as many others as it has ranks.
    const int most = *std::max_element(ranks.begin(), ranks.end());
    demand.host_rounds = ceil_log(1 + most, static_cast<int>(ranks.size()));
  }
  return demand;
}

double lower_bound(const Demand& demand, const Links& links, int calls) {
  if (demand.rounds == 0) return 0;
  const Link& nearest = links.within ? *links.within : *links.across;
  double latency = demand.rounds * nearest.latency;
  double best = nearest.bandwidth(demand.block);
  double transfer = 0;
  if (links.across) {
    latency = std::max(latency, demand.host_rounds * links.across->latency);
    const double link = links.across->bandwidth(demand.block);
    best = std::max(best, link);
    transfer = demand.host_bytes / link;
  }
  transfer = std::max(transfer, demand.rank_bytes / best);
  return latency / (demand.one_way ? calls : 1) + transfer;
}

}  // namespace baton::cli::bench
