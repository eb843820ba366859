#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "event_queue.hpp"
#include "program.hpp"
#include "wires.hpp"

namespace baton::simulating {

/// When a step was posted, began and ended, as Event has it.
struct StepTimes {
  std::int64_t posted = 0, start = 0, end = 0;
};

/// Ranks that follow a program.
///
/// A rank's processor does one thing at a time. Having taken a message (or noticed that one has
/// left) it posts what may be posted, then folds and copies, posting in between, until nothing is
/// left but to wait: all that is one batch, simulated at once, since nothing from outside changes
/// its course. So the queue holds but messages on their way and processors that become free.
class Engine {
 public:
  Engine(Program& program, const Network& network, const std::vector<int>& host_of,
         const SimulateOptions& options, std::vector<StepTimes>* times);

  /// Throws Error(invalid_argument) if ranks wait for each other for ever.
  void run();

  std::int64_t finish(int rank) const { return ranks_[static_cast<std::size_t>(rank)].finish; }
  std::int64_t events() const { return events_; }
  const std::vector<HostBytes>& host_bytes() const { return host_bytes_; }
  std::int64_t bytes_within() const { return bytes_within_; }

 private:
  /// A queue of a rank's steps, linked by FlatStep::next.
  struct Fifo {
    std::uint32_t head = none, tail = none;
    bool empty() const { return head == none; }
  };
  struct Rank {
    Fifo posts;             ///< messages whose turn has come
    Fifo locals;            ///< folds and copies that are ready
    Fifo sent;              ///< sends whose buffers were free at once
    Fifo arrivals;          ///< messages that the processor is to deal with
    std::int64_t busy = 0;  ///< until when
    std::int64_t finish = 0;
    std::uint32_t left = 0;       ///< steps
    std::uint32_t each = 0;       ///< those of one call
    std::uint32_t call_left = 0;  ///< those of the call that it is at
    std::uint32_t call = 0;       ///< the first of these
    bool started = false;
    bool awaited = false;  ///< an event, or a place in the line for a processor, will wake it
  };

  void push(Fifo& fifo, std::uint32_t step);
  std::uint32_t take(Fifo& fifo);
  int rank_of(std::uint32_t message) const { return program_.streams[steps_[message].stream].rank; }

  // A batch, at the rank's own time `now_`.
  void wake(int rank, std::int64_t time);
  void batch(int rank, std::int64_t time);
  void begin(int rank);
  /// Begins the call after one that is complete.
  void begin_call(Rank& rank);
  void release(Rank& rank, std::uint32_t step);
  void deal_with(Rank& rank, std::uint32_t step);
  void post(Rank& rank, std::uint32_t step);
  void post_send(Rank& rank, std::uint32_t step);
  void post_ready(Rank& rank, std::uint32_t stream);
  void leave(Rank& rank, std::uint32_t step);
  void complete(Rank& rank, std::uint32_t step);
  void work(Rank& rank, std::uint32_t step);

  // What happens to messages.
  void put_on_wire(std::uint32_t send, std::int64_t time);
  void inject(std::uint32_t send, std::int64_t time);
  void inject_packet(std::uint32_t send, std::int64_t time);
  void left_wire(std::uint32_t send, std::int64_t time);
  /// What of a message is the next to pass, after `passed` bytes.
  static Load packet_of(const FlatStep& step, std::int64_t passed, const LevelTimes& level);
  void announce(std::uint32_t step, std::int64_t time, EventKind kind);
  void arrive(std::uint32_t recv, std::int64_t time);
  void enqueue(std::uint32_t step, Stage stage, std::int64_t time);
  void handle(const Event& event);
  Wire& wire(int rank, bool across, bool in);
  LevelTimes& level(const Stream& stream) { return stream.across ? across_ : within_; }
  bool in_packets(const Stream& stream) { return level(stream).level.packet > 0; }

  void free_processor(int rank, std::int64_t time);
  [[noreturn]] void fail_stuck() const;

  Program& program_;
  std::vector<FlatStep>& steps_;
  std::vector<StepTimes>* times_;  ///< null: not kept
  LevelTimes within_, across_;
  Lookup fold_, copy_;
  std::int64_t call_;
  std::uint32_t window_;
  std::uint32_t calls_;
  const std::vector<int>& host_of_;
  std::vector<int> host_ranks_;  ///< how many share a host
  std::vector<Rank> ranks_;
  std::vector<Wire> rank_wires_, host_wires_;  ///< out and in, in turn
  std::vector<HostBytes> host_bytes_;
  std::int64_t bytes_within_ = 0;
  EventQueue queue_;

  // Of levels with packets, empty otherwise: messages of a stream pass one after the other.
  std::vector<std::int64_t> passed_;   ///< bytes of each message, at its own wire
  std::vector<std::int64_t> ready_;    ///< when a send could begin to pass
  std::vector<std::uint32_t> behind_;  ///< the next send in its stream's queue
  std::vector<Fifo> on_wire_;          ///< of each stream

  std::int64_t events_ = 0;
  std::int64_t now_ = 0;

  bool shared_processors_;
  int free_processors_;
  std::vector<std::uint32_t> line_;  ///< next rank in the line for a processor
  std::uint32_t line_head_ = none, line_tail_ = none;
};

}  // namespace baton::simulating
