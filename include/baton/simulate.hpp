#pragma once
/// The time that schedules take on a network, predicted by simulating the ranks that follow them.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "baton/schedule.hpp"
#include "baton/timeline.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// Nanoseconds over bytes: straight lines between points, before the first from (0, 0), after the
/// last as between the last two. No points: no time.
class TimeTable {
 public:
  /// The time for this many bytes.
  struct Point {
    std::int64_t bytes = 0;
    double ns = 0;
    bool operator==(const Point&) const = default;
  };
  TimeTable() = default;
  /// Throws Error(invalid_argument) unless bytes ascend from 0 or more and times do not descend
  /// from 0 or more.
  explicit TimeTable(std::vector<Point> points);
  /// `start` and `per_byte` more for each byte.
  static TimeTable line(double start, double per_byte);

  /// To the nearest nanosecond.
  std::int64_t of(std::int64_t bytes) const;
  std::span<const Point> points() const { return points_; }  ///< by bytes, ascending
  bool operator==(const TimeTable&) const = default;

 private:
  std::vector<Point> points_;
};

/// The cost of messages between two ranks: LogGP's parameters by size of message. Times are ns.
struct NetworkLevel {
  std::int64_t latency = 0;  ///< from one end of the wire to the other
  std::int64_t post = 0;     ///< of the processor, to post a receive
  /// Of the sender's processor for a message. What it takes at 0 bytes passes before the message is
  /// on the wire, the rest while it is.
  TimeTable send;
  /// Of the receiver's processor, likewise: the part that grows with bytes is done while the
  /// message arrives, if the processor has the time.
  TimeTable receive;
  /// How long a message keeps the wire; at 0 bytes: the gap between messages.
  TimeTable wire;
  /// Bytes up to which a message is sent at once, and its sender's buffer is free when its
  /// processor is. A longer one (rendezvous) is announced, and sent when the receiver, who has
  /// posted its receive, has answered.
  std::int64_t eager = std::numeric_limits<std::int64_t>::max();
  std::int64_t handshake = 0;  ///< of the processor, to answer and to take the answer, each
  /// Bytes of a message that pass before it is the turn of other connections on the same wire; all
  /// messages from one rank to another share a connection, in order. 0: messages pass whole, in the
  /// order in which they come.
  std::int64_t packet = 0;
  /// Bytes that pass at `burst_per_byte` after a pause (a token bucket, as `tc tbf` has); 0: none.
  std::int64_t burst = 0;
  double burst_per_byte = 0;

  bool operator==(const NetworkLevel&) const = default;
};

/// The ranks' machine, as far as time goes.
///
/// Within a host each rank has a wire of its own in each direction; all ranks of a host share its
/// wire to other hosts.
struct Network {
  std::string name;
  std::string source;      ///< where its numbers come from, for readers; may have several lines
  int ranks_per_host = 0;  ///< as it is used, unless one says otherwise; 0: all on one host
  int processors = 0;      ///< that all ranks of all hosts share; 0: each rank has its own
  std::int64_t call = 0;   ///< of a rank, before its first step
  TimeTable fold;          ///< of one operand's bytes
  TimeTable copy;          ///< of bytes that are copied, or divided
  NetworkLevel within, across;

  bool operator==(const Network&) const = default;
};

/// Reads the form that lib/simulate/README.md describes. Throws Error(invalid_argument) naming
/// `origin`, the line, what was expected and what was found.
Network parse_network(std::string_view text, const std::string& origin);
/// parse_network(print(network), …) is equal to the network. Throws Error(invalid_argument) where
/// no text would be: times of more than 10^12 ns but for those of tables, tables of more than 1000
/// points, more than 2^20 ranks per host or processors, numbers below 0, no name, or a name or a
/// line of the source with a #, or with a blank at an end.
std::string print(const Network& network);
/// Name, latencies and rates, in one line.
std::string summary(const Network& network);
/// Of a file, or, where there is none, the one of that name that comes with the library. Throws
/// Error(invalid_argument) that lists those.
Network network_named(const std::string& file);
/// Names of the networks that come with the library.
std::vector<std::string> shipped_networks();

/// How schedules are simulated.
struct SimulateOptions {
  std::shared_ptr<const Hosts> hosts;  ///< null: all ranks share one
  int window = 2;                      ///< messages in flight per lane, peer and direction
  int calls = 1;                       ///< that each rank makes, one right after the other
  std::int64_t segment = 0;            ///< elements, as segmented() cuts schedules; 0: as they are
  /// ns between two looks at messages during a computation that advances them; stands for calls of
  /// progress() between panels of work. 0: no look before its end.
  std::int64_t panel = 0;
  /// Whether computations leave the network's `processors` to messages: ranks that sleep in place
  /// of computing, or compute on other processors.
  bool computes_apart = false;
  bool timeline = false;  ///< keeps every step's times, for one call
};

/// Bytes that have passed a host's wire to other hosts.
struct HostBytes {
  std::int64_t sent = 0, received = 0;
};

/// Result of a simulation.
struct Prediction {
  std::vector<std::int64_t> finish;  ///< ns, of each rank, from the common start
  std::int64_t total = 0;            ///< of the last
  std::int64_t messages = 0;
  std::int64_t steps = 0;
  /// The number of events: work of processors (a post, a fold, a copy, an answer, taking a message)
  /// and stages of messages (put on a wire, first byte there, whole message there).
  std::int64_t events = 0;
  double seconds = 0;                ///< of the wall clock, for them, schedules not counted
  std::vector<HostBytes> hosts;      ///< bytes across
  std::int64_t bytes_within = 0;     ///< between ranks of one host
  std::optional<Timeline> timeline;  ///< in the order that finish() asks for, chunks not named
};

/// Follows the schedules of all ranks, cut as the options say and packed: steps are posted, windows
/// held and work ordered as the executor does; see lib/simulate/README.md. The same input gives the
/// same result to the nanosecond.
///
/// Throws Error(invalid_argument) where messages do not match, or ranks wait for each other for
/// ever, in one sentence that says who waits for whom.
Prediction simulate(const std::shared_ptr<const std::vector<Schedule>>& schedules,
                    std::size_t element_bytes, const Network& network,
                    const SimulateOptions& options = {});

/// The same without keeping schedules: schedule_of(rank) is called for each rank, by several
/// threads at once. Throws Error(unsupported) before it starts where the memory would not suffice.
Prediction simulate(int ranks, const std::function<Schedule(int)>& schedule_of,
                    std::size_t element_bytes, const Network& network,
                    const SimulateOptions& options = {});

}  // namespace baton
#pragma GCC visibility pop
