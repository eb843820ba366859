#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cli/common/case.hpp"
#include "cli/measure/sides.hpp"

namespace baton::cli::bench {

/// Messages of one size between the neighbours of a ring, all ranks at once: to be timed in turn
/// with something else, and its times.
struct Exchange : measure::Timed {
  bool across = false;     ///< from host to host
  std::int64_t bytes = 0;  ///< of one message
  int messages = 1;        ///< each way, per call

  std::vector<double> times() const;  ///< seconds per message and direction, of the slowest rank
  double bandwidth() const;           ///< bytes per second and direction, at the median
};

/// Bytes of the messages whose latency is measured.
constexpr std::int64_t latency_bytes = 8;

/// Plain messages between two ranks.
struct Link {
  double latency = 0;             ///< seconds, one way, while all other ranks sleep
  std::vector<double> latencies;  ///< its samples
  std::vector<Exchange> exchanges;

  /// The best of messages of this size or larger, or of the largest. So the cost of starting a
  /// message is no part of it, and large messages leave the caches.
  double bandwidth(std::int64_t bytes) const;
};

/// Plain messages of the transport.
struct Links {
  std::optional<Link> within;  ///< a host, where one has several ranks
  std::optional<Link> across;  ///< from host to host, where there are several
};

/// Messages between neighbours in rings: of each host's own ranks, and of all ranks, host by host.
/// All functions are collective.
class Rings {
 public:
  explicit Rings(World& world);

  /// Latencies and some message sizes of both links, each sample of `seconds` or one message.
  Links measure(double seconds);

  /// One for each link that there is; none for 0 bytes. They share buffers, which the next call of
  /// probes() or measure() replaces.
  std::vector<Exchange> probes(std::int64_t bytes);

 private:
  struct Ring {
    int first, second;             // neighbours, whose latency is measured
    int next = -1, previous = -1;  // this rank's; -1: it takes no part
  };
  Link link(const Ring& ring, double seconds);
  std::vector<double> latencies(const Ring& ring, double seconds);
  Exchange probe(const Ring& ring, std::int64_t bytes);

  World& world_;
  std::unique_ptr<PlainMessages> messages_;
  std::optional<Ring> within_, across_;
};

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
