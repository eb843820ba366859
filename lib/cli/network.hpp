#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "exercise.hpp"
#include "json.hpp"
#include "world.hpp"

namespace baton::cli {

/// How fast neighbours in a ring exchange messages of one size, all ranks at once.
struct Pace {
  std::int64_t bytes = 0;       ///< of one message
  std::vector<double> samples;  ///< seconds per message and direction, of the slowest rank

  double bandwidth() const;  ///< bytes per second and direction, at the median
};

/// What plain messages reach between two ranks.
struct Path {
  double latency = 0;             ///< seconds, one way, of 8 bytes while all other ranks sleep
  std::vector<double> latencies;  ///< its samples
  std::vector<Pace> paces;

  /// The best of messages of this size or larger, or of the largest. So the cost of starting a
  /// message is no part of it, and large messages leave the caches.
  double bandwidth(std::int64_t bytes) const;
};

/// What plain messages of the transport reach, within a host and from host to host.
struct Network {
  std::optional<Path> within;  ///< where a host has several ranks
  std::optional<Path> across;  ///< where there are several hosts
  Json json() const;
};

/// Messages between neighbours in rings: of each host's own ranks, and of all ranks, host by host.
/// All functions are collective.
class Rings {
 public:
  explicit Rings(World& world);

  /// Latencies and some message sizes of both paths, each sample of `seconds` or one message.
  Network measure(double seconds);

  /// Runs of one exchange, for samples that are taken in turn with something else; they share
  /// buffers, which the next call of probe() or measure() replaces.
  struct Probe {
    bool across = false;
    std::int64_t bytes = 0;
    int messages = 1;  ///< each way, per run
    std::function<void()> run;
  };
  /// One for each path that there is; none for 0 bytes.
  std::vector<Probe> probes(std::int64_t bytes);

 private:
  struct Ring {
    int first, second;             // neighbours, whose latency is measured
    int next = -1, previous = -1;  // this rank's; -1: it takes no part
  };
  Path path(const Ring& ring, double seconds);
  std::vector<double> latencies(const Ring& ring, double seconds);
  Probe probe(const Ring& ring, std::int64_t bytes);

  World& world_;
  std::unique_ptr<PlainMessages> messages_;
  std::optional<Ring> within_, across_;
};

/// What a collective demands of any algorithm where a rank sends one message and receives one at a
/// time (the one-port model of Chan, Heimlich, Purkayastha & van de Geijn, Concurrency and
/// Computation 19, 2007, section 3, whose bounds these are; all-reduce: Patarasuk & Yuan, JPDC
/// 69(2), 2009). Computation is not counted.
struct Demand {
  double rank_bytes = 0;   ///< sent or received by the busiest rank
  double host_bytes = 0;   ///< sent or received by the busiest host; 0: there is one host
  std::int64_t block = 0;  ///< bytes of a rank's block, or of all where there are no blocks
  int rounds = 0;          ///< messages that must follow each other
  int host_rounds = 0;     ///< those from host to host
  bool one_way = false;    ///< calls back to back overlap: some rank need not wait for any other
};
/// `hosts` as World::hosts() has them.
Demand demand_of(const Exercise& exercise, const std::vector<int>& hosts);

/// Seconds per call: the latency of all rounds, and the bytes at the bandwidth of messages of a
/// block's size, both ways at once. Of calls that overlap, `calls` share one latency.
double lower_bound(const Demand& demand, const Network& network, int calls);

}  // namespace baton::cli
