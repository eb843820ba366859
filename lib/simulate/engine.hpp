#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "state.hpp"

namespace baton::simulating {

/// The outcome of a simulation, beside the state.
struct Outcome {
  std::int64_t events = 0, bytes_within = 0;
};

/// Simulates all ranks to the end.
///
/// Time passes in windows as long as the state's lookahead. An event of one domain reaches other
/// domains after the window. So domains run their events independently, on several threads.
Outcome run(State& state, const Network& network, const SimulateOptions& options);

/// The thread that follows a domain.
std::size_t thread_of(std::uint32_t domain, std::size_t threads);

/// Follows ranks through the events of one domain at a time.
///
/// A rank's processor does one thing at a time. When it has taken a message, or noticed that one
/// has left, it posts, folds and copies until it must wait. This is one batch, simulated at once,
/// since no outside event changes its course. So the queue holds only messages under way and
/// processors that become free.
class Engine {
 public:
  /// Engines of several threads share a state, each with its own domains.
  Engine(State& state, const Network& network, const SimulateOptions& options, std::size_t threads);

  /// Runs a rank's first batch. Ranks of a domain start in ascending order.
  void start(int rank);
  /// Runs all events of a domain before `end`.
  void follow(std::uint32_t domain, std::int64_t end);
  /// Events for other domains, by the thread that follows them.
  std::vector<std::vector<Event>>& outboxes() { return outboxes_; }
  /// The earliest time among these.
  std::int64_t earliest_sent() const { return earliest_sent_; }
  void forget_sent() { earliest_sent_ = never; }

  std::int64_t events() const { return events_; }
  std::int64_t bytes_within() const { return bytes_within_; }

 private:
  void at(std::uint32_t domain);
  void push(const Event& event);
  static void push(RankState& rank, Fifo& fifo, std::uint32_t step);
  static std::uint32_t take(RankState& rank, Fifo& fifo);

  // Runs a batch, at the rank's own time `now_`.
  void wake(RankState& rank, std::int64_t time);
  void batch(RankState& rank, std::int64_t time);
  void begin(RankState& rank);
  /// Begins the next call after a complete one.
  void begin_call(RankState& rank);
  void release(RankState& rank, std::uint32_t step);
  void deal_with(RankState& rank, std::uint32_t step);
  void post(RankState& rank, std::uint32_t step);
  void post_send(RankState& rank, std::uint32_t step);
  void post_ready(RankState& rank, std::uint32_t channel);
  void leave(RankState& rank, std::uint32_t step);
  void complete(RankState& rank, std::uint32_t step);
  void work(RankState& rank, std::uint32_t step);
  void free_processor(RankState& rank, std::int64_t time);
  /// Gives a processor to the next rank in line, or frees it.
  void pass_processor(std::int64_t time);

  // Computations.
  void compute(RankState& rank);
  /// A message has come while the rank computes.
  void interrupt(RankState& rank, std::int64_t time);
  void end_panel(RankState& rank, const Event& event);
  void end_computation(RankState& rank, const Event& event);
  /// Goes on with messages and other work after a stretch.
  void resume(RankState& rank, std::int64_t time);

  // Events of messages.
  /// `moment` is when the sender's processor has copied it.
  void put_on_wire(RankState& rank, std::uint32_t send, std::int64_t time, std::int64_t moment);
  void inject(RankState& rank, std::uint32_t send, std::int64_t time, std::int64_t moment);
  void inject_packet(RankState& rank, std::uint32_t send, std::int64_t time);
  void left_wire(RankState& rank, std::uint32_t send, std::int64_t time);
  void announce(RankState& rank, std::uint32_t step, std::int64_t time, EventKind kind);
  void tell(RankState& rank, std::uint32_t step, std::int64_t time, EventKind kind);
  void arrive(RankState& rank, std::uint32_t recv, std::int64_t time, std::int64_t moment);
  void delivered(RankState& rank, std::uint32_t recv, std::int64_t time);
  void heard(RankState& rank, const Event& event);
  void enqueue(RankState& rank, std::uint32_t step, Stage stage, std::int64_t time);
  void handle(const Event& event);
  Wire& wire(const RankState& rank, bool across, bool in);
  /// Whether other ranks of its host use the wire of the channel.
  bool shares_wire(const RankState& rank, const ChannelState& channel) const;

  static const Shape::Step& fixed(const RankState& rank, std::uint32_t step) {
    return rank.shape->steps[step];
  }
  static ChannelState& channel_of(RankState& rank, std::uint32_t message) {
    return rank.channels[fixed(rank, message).channel];
  }
  LevelTimes& level(const ChannelState& channel) { return channel.across ? across_ : within_; }
  bool in_packets(const ChannelState& channel) { return level(channel).level.packet > 0; }

  State& state_;
  LevelTimes within_, across_;
  Lookup fold_, copy_;
  std::int64_t call_;
  std::uint32_t window_;
  std::uint32_t calls_;
  std::int64_t panel_;
  bool computes_apart_;
  std::uint32_t domain_ = 0;
  EventQueue* queue_ = nullptr;  ///< the domain's
  std::vector<std::vector<Event>> outboxes_;
  std::int64_t earliest_sent_ = never;
  std::int64_t now_ = 0;
  std::int64_t events_ = 0, bytes_within_ = 0;
};

}  // namespace baton::simulating
