#include "lower_bound.hpp"

#include <algorithm>

namespace baton::cli::bench {
namespace {

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

bool is_one_way(Collective collective) {
  return rooted(collective) || collective == Collective::scan || collective == Collective::exscan;
}

}  // namespace

Demand demand_of(const Case& subject, const std::vector<int>& hosts) {
  Demand demand;
  const int size = subject.ranks();
  const bool silent = subject.bytes() == 0 && subject.collective() != Collective::barrier;
  if (size == 1 || silent) return demand;
  // If blocks are exchanged, the busiest rank keeps its own; else somebody sends, or receives,
  // all.
  demand.rank_bytes = static_cast<double>(subject.bytes()) * subject.bus_factor();
  const bool whole =
      subject.collective() == Collective::broadcast || subject.collective() == Collective::reduce ||
      subject.collective() == Collective::scan || subject.collective() == Collective::exscan;
  demand.block = whole ? subject.bytes() : subject.bytes() / size;
  demand.rounds = ceil_log(2, size);
  demand.one_way = is_one_way(subject.collective());
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
