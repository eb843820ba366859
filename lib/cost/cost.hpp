#pragma once

#include <cstddef>
#include <cstdint>

#include "baton/schedule/algorithm.hpp"

namespace baton::costs {

/// What messages over one kind of link, and folds beside them, cost, LogGP-like. Times in seconds.
struct LinkParameters {
  double latency = 0;    ///< of a message, from end to end, beside the overhead
  double overhead = 0;   ///< of a message, in which its sender or receiver does nothing else
  double per_piece = 0;  ///< of a piece more
  double per_byte = 0;   ///< of a message; each direction of a host's link has it to itself
  /// Bytes up to which a message goes without a handshake, and how much longer bytes of a longer
  /// one take: its sender waits for an answer that queues behind the data of others.
  double eager = 0, rendezvous = 1;
  /// The same of bytes where messages go to others than the neighbours, and meet on links.
  double congestion = 1;
  double fold_per_byte = 0;  ///< of a reduction, per byte of one operand
  /// Share of a rank's folds that hides behind the pieces that arrive meanwhile: none where the
  /// processor that folds copies the messages too, as over shared memory.
  double hidden_folds = 0;
};

/// Ranks of one host, as measured; see tests/bench.
inline constexpr LinkParameters shared_memory{.latency = 0.25e-6,
                                              .overhead = 0.25e-6,
                                              .per_piece = 20e-6,
                                              .per_byte = 1 / 8e9,
                                              .fold_per_byte = 1 / 12e9,
                                              .hidden_folds = 0};

/// Hosts joined by TCP over links of 1 Gbit/s, as measured on virtual ones that share cores: where
/// each has its own, overheads are less.
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
};

/// Estimated time of an algorithm on its busiest rank among a few (root, first, middle, last), in
/// seconds, with messages cut into pieces of `segment` bytes (0: not cut). The same on all ranks.
///
/// A schedule takes a latency for each message of its longest path, an overhead for each of its
/// rounds, and the bytes of that path; cut into segments, those of the busiest rank, and before
/// them a piece for each round that the path is longer. Its folds are added, but for those that
/// hide behind arriving pieces.
///
/// Where ranks are on several hosts, a hierarchical algorithm takes its two kinds of rounds one
/// after the other. Of others all rounds cross, and all ranks of a host share its link, unless
/// their messages go to neighbours only, and so do hosts.
double estimate(const Algorithm& algorithm, const Problem& problem, std::size_t element_bytes,
                std::int64_t segment, const NetworkParameters& network);

}  // namespace baton::costs
