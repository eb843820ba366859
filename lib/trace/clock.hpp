#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "baton/transport.hpp"
#include "part.hpp"

namespace baton::tracing {

/// Names this process's monotonic clock: equal on one host, but for processes in a time namespace
/// of their own.
std::uint64_t clock_identity(int host);

/// How to read a clock, in ns. Others than now() are for tests.
using Clock = std::function<std::int64_t()>;

/// How to wait for another rank: so long without a sign of it, and what to do between looks.
struct Patience {
  std::chrono::milliseconds at_most;
  std::function<void()> meanwhile = {};
};

/// Ping-pong with a rank whose clock is the reference: that one calls answer_clock(), the other
/// compare_clock(), both with the same number of rounds. Of all rounds the quickest tells most: the
/// reference read its clock between the two readings of this one. Throws Error(timeout) where
/// patience ends.
ClockSample compare_clock(Transport& transport, int reference, int tag, int rounds,
                          const Clock& clock, const Patience& patience);
void answer_clock(Transport& transport, int asking, int tag, int rounds, const Clock& clock,
                  const Patience& patience);

/// Sends or receives all of a message. Throws Error(timeout) as above.
void send_all(Transport& transport, int peer, int tag, const void* data, std::size_t bytes,
              const Patience& patience);
void recv_all(Transport& transport, int peer, int tag, void* data, std::size_t bytes,
              const Patience& patience);

/// Times of rank 0's clock from those of another, whose offset is taken to change evenly between
/// two samples.
class Correction {
 public:
  Correction() = default;  ///< of the same clock
  Correction(const ClockSample& before, const ClockSample& after);

  std::int64_t operator()(std::int64_t local) const;
  /// Bound on the error of any time between the samples.
  std::int64_t error() const { return error_; }

 private:
  ClockSample before_;
  double slope_ = 0;  // ns of offset per ns
  std::int64_t error_ = 0;
};

}  // namespace baton::tracing
