#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "baton/transport.hpp"
#include "part.hpp"

namespace baton::tracing {

/// Identifies this process's monotonic clock: equal on one host, unless processes are in time
/// namespaces of their own.
std::uint64_t clock_identity(int host);

/// A function that reads a clock, in ns. Tests use others than now().
using Clock = std::function<std::int64_t()>;

/// Called between looks for a message of another rank: its number, and how long it has been silent.
/// What it throws ends the wait.
using Patience = std::function<void(int peer, std::chrono::milliseconds waited)>;
/// One that throws Error(timeout) after this time.
Patience at_most(std::chrono::milliseconds limit);

/// Ping-pong with the rank of the reference clock. That rank calls answer_clock(), the other one
/// compare_clock(), both with the same number of rounds. The quickest round counts: the reference
/// read its clock between two readings of this one.
ClockSample compare_clock(Transport& transport, int reference, int tag, int rounds,
                          const Clock& clock, const Patience& patience);
void answer_clock(Transport& transport, int asking, int tag, int rounds, const Clock& clock,
                  const Patience& patience);

/// Sends or receives all of a message.
void send_all(Transport& transport, int peer, int tag, const void* data, std::size_t bytes,
              const Patience& patience);
void recv_all(Transport& transport, int peer, int tag, void* data, std::size_t bytes,
              const Patience& patience);

/// Converts another clock's times to rank 0's. Assumes that the offset changes evenly between two
/// samples.
class Correction {
 public:
  Correction() = default;  ///< for the same clock
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
