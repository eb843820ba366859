#pragma once

#include <cstddef>
#include <cstdint>

#include "baton/schedule/algorithm.hpp"

namespace baton::costs {

/// The costs of messages over one kind of link, and of folds beside them, as in LogGP. Times in
/// seconds.
struct LinkParameters {
  double latency = 0;    ///< of a message, from end to end, without the overhead
  double overhead = 0;   ///< of a message; its sender or receiver does nothing else meanwhile
  double per_piece = 0;  ///< of each additional piece
  double per_byte = 0;   ///< of a message alone in its direction of a host's link
  /// Longer messages than `eager` bytes need a handshake; their bytes take `rendezvous` times as
  /// long. The sender waits for an answer that queues behind others' data.
  double eager = 0, rendezvous = 1;
  /// The factor for bytes of messages that do not go to neighbours, and so meet on links.
  double congestion = 1;
  double fold_per_byte = 0;  ///< of a reduction, per byte of one operand
  /// Ranks that share cores fold a message longer than `cached` bytes from memory: `uncached` times
  /// as long, by all_reduce and reduce_scatter of 16 MiB, 4 ranks on 2 cores.
  double cached = 1 << 20, uncached = 2.5;
  /// The share of a rank's folds that overlaps with arriving pieces. It is 0 if the same processor
  /// folds and copies the messages, as over shared memory.
  double hidden_folds = 0;
};

/// Ranks of one host, as measured; see tests/bench.
inline constexpr LinkParameters shared_memory{.latency = 0.25e-6,
                                              .overhead = 0.25e-6,
                                              .per_piece = 20e-6,
                                              .per_byte = 1 / 8e9,
                                              .fold_per_byte = 1 / 12e9,
                                              .hidden_folds = 0};

/// Hosts with TCP over links of 1 Gbit/s, as measured on virtual hosts that share cores. Overheads
/// are lower if each host has its own cores.
inline constexpr LinkParameters gigabit_tcp{.latency = 25e-6,
                                            .overhead = 45e-6,
                                            .per_piece = 3e-6,
                                            .per_byte = 1 / 118e6,
                                            .eager = 60e3,
                                            .rendezvous = 1.2,
                                            .congestion = 1.25,
                                            .fold_per_byte = 1 / 12e9,
                                            .hidden_folds = 1};

/// The links between ranks of one host, and between hosts.
struct NetworkParameters {
  LinkParameters within = shared_memory;
  LinkParameters across = gigabit_tcp;
  int cores = 0;  ///< of one host with all ranks, which copy and fold; 0: one for each rank
};

/// The load of each core, if all ranks share those of one host and are more.
struct Work {
  double moved = 0;   ///< elements sent and received
  double folded = 0;  ///< elements
  double ranks = 1;   ///< of each core
};

/// The exact sum over all ranks. The same on all ranks.
Work work_of(const Algorithm& algorithm, const Problem& problem, const NetworkParameters& network);

/// Elements that one rank sends: the most of a few ranks. The same on all ranks.
std::int64_t most_sent(const Algorithm& algorithm, const Problem& problem);

/// Estimated time of an algorithm, in seconds, with messages cut into pieces of `segment` bytes (0:
/// not cut): the maximum over a few ranks (root, first, middle, last). The same on all ranks.
///
/// A schedule takes a latency for each message of its longest path, an overhead for each of its
/// rounds, and the bytes of that path. Cut into segments, it takes the bytes of the busiest rank,
/// and one piece for each additional round of the path. Folds are added, except for the share that
/// overlaps with arriving pieces.
///
/// On several hosts, a hierarchical algorithm takes its two kinds of rounds one after the other.
/// All rounds of other algorithms cross between hosts, and all ranks of a host share its link. They
/// do not share it if messages go only to neighbours and each host's ranks are consecutive.
///
/// On one host with fewer cores than ranks, the time is at least that of a core's share of all
/// bytes, which are work for their sender and for their receiver, and of all folds; overheads of a
/// core's ranks add up. So algorithms that move fewer bytes in all, in fewer messages, gain against
/// those with a shorter path, and folds gain by pieces that stay in a core's cache. A rank with a
/// core of its own is taken to send and receive at once.
///
/// `work`: that of the algorithm, which does not depend on the segment.
double estimate(const Algorithm& algorithm, const Problem& problem, std::size_t element_bytes,
                std::int64_t segment, const NetworkParameters& network, const Work& work);
inline double estimate(const Algorithm& algorithm, const Problem& problem,
                       std::size_t element_bytes, std::int64_t segment,
                       const NetworkParameters& network) {
  return estimate(algorithm, problem, element_bytes, segment, network,
                  work_of(algorithm, problem, network));
}

}  // namespace baton::costs
