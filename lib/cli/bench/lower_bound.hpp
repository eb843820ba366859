#pragma once

#include <cstdint>
#include <vector>

#include "cli/common/case.hpp"
#include "plain_links.hpp"

namespace baton::cli::bench {

/// The least that any algorithm of a collective sends if a rank sends one message and receives one
/// at a time: the one-port model and the bounds of Chan, Heimlich, Purkayastha & van de Geijn,
/// Concurrency and Computation 19, 2007, section 3; all-reduce: Patarasuk & Yuan, JPDC 69(2), 2009.
/// Computation is not counted.
struct Demand {
  double rank_bytes = 0;   ///< sent or received by the busiest rank
  double host_bytes = 0;   ///< sent or received by the busiest host; 0: there is one host
  std::int64_t block = 0;  ///< bytes of a rank's block, or of all where there are no blocks
  int rounds = 0;          ///< messages that must follow each other
  int host_rounds = 0;     ///< those from host to host
  bool one_way = false;    ///< calls back to back overlap: some rank need not wait for any other
};
/// `hosts` as World::hosts() has them.
Demand demand_of(const Case& subject, const std::vector<int>& hosts);

/// Seconds per call: the latency of all rounds, and the bytes at the bandwidth of messages of a
/// block's size, both ways at once. Of calls that overlap, `calls` share one latency.
double lower_bound(const Demand& demand, const Links& links, int calls);

}  // namespace baton::cli::bench
