#pragma once

#include <cstddef>
#include <cstdint>

#include "baton/schedule/algorithm.hpp"

namespace baton {

/// What messages and folds cost, LogGP-like. Times in seconds.
struct NetworkParameters {
  double latency = 0.5e-6;          ///< of a message, end to end, overheads included
  double per_piece = 20e-6;         ///< of a piece more: handshake, and waiting for the peer's turn
  double per_byte = 1 / 8e9;        ///< of a message
  double fold_per_byte = 1 / 12e9;  ///< of a reduction, per byte of one operand
  /// Share of a rank's folds that hides behind the pieces that arrive meanwhile: none where the
  /// processor that folds copies the messages too, as over shared memory.
  double hidden_folds = 0;
};

/// Estimated time of an algorithm on its busiest rank among a few (root, first, middle, last), in
/// seconds, with messages cut into pieces of `segment` bytes (0: not cut). The same on all ranks.
///
/// A schedule of R rounds takes about R latencies and the bytes of its longest path; cut into
/// segments, R rounds of one segment and, behind them, the bytes of the busiest rank. Its folds are
/// added, but for those that hide behind arriving pieces.
double estimate(const Algorithm& algorithm, const Problem& problem, std::size_t element_bytes,
                std::int64_t segment, const NetworkParameters& network);

}  // namespace baton
