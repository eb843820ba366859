#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "baton/simulate.hpp"
#include "event_queue.hpp"
#include "program.hpp"
#include "wires.hpp"

namespace baton::simulating {

/// Later than every event.
inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// When a step was posted, began and ended, as in Event.
struct StepTimes {
  std::int64_t posted = 0, start = 0, end = 0;
};

/// The stage of a step.
enum class Stage : std::uint8_t {
  idle,
  posted,
  here,       ///< a receive whose message arrived before it was posted
  announced,  ///< a receive whose sender waits for it
  answer,     ///< a posted receive that must be answered
  take,       ///< a receive whose message can be taken
  send_data,  ///< a send that has been answered
  sent,       ///< a send that has left
  done,
};

/// The changing state of a step. Each step of each rank has one, so it is small.
struct StepState {
  std::uint32_t next = none;  ///< in a queue of its rank
  std::uint32_t waits : 28;   ///< incomplete steps that it waits for
  std::uint32_t stage : 4;

  explicit StepState(std::uint32_t waits) : waits(waits & 0xfff'ffff), stage(0) {}
  Stage at() const { return static_cast<Stage>(stage); }
  void go(Stage to) { stage = static_cast<std::uint32_t>(to) & 0xf; }
};

/// A queue of a rank's steps, linked by StepState::next or PacketState::behind.
struct Fifo {
  std::uint32_t head = none, tail = none;
  bool empty() const { return head == none; }
};

/// A message's state if a level has packets: messages of a channel pass one after the other.
struct PacketState {
  std::int64_t passed = 0;      ///< bytes, at its own wire
  std::int64_t ready = 0;       ///< when a send could begin to pass
  std::int64_t moment = 0;      ///< when the sender's processor has copied it
  std::uint32_t behind = none;  ///< the next send in its channel's queue
};

struct ChannelState {
  const std::uint32_t* partners = nullptr;  ///< the peer's step of each message in turn
  std::int64_t last_arrival = 0;            ///< of received messages: they do not overtake each
                                            ///< other
  std::int32_t peer = 0;
  std::uint32_t next = 0;        ///< to be posted
  std::uint32_t connection = 0;  ///< the first channel to the same rank; all of these share its
                                 ///< queue of packets
  std::uint16_t in_flight = 0;
  bool across = false;  ///< to another host
};

/// A computation of a rank, whose processor has it in stretches, between messages and folds.
struct Computing {
  std::uint32_t step = none;  ///< none: the rank does not compute
  bool begun = false;
  bool running = false;      ///< the processor has it now
  bool wanted = false;       ///< a message waits for the end of the panel
  bool looks = false;        ///< takes messages before it begins the next computation
  bool apart = false;        ///< runs without one of the shared processors
  std::int64_t since = 0;    ///< begin of the stretch
  std::int64_t left = 0;     ///< ns, at the begin of the stretch
  std::int64_t stretch = 0;  ///< events of earlier stretches mean nothing
};

struct RankState {
  const Shape* shape = nullptr;
  StepState* steps = nullptr;
  ChannelState* channels = nullptr;
  PacketState* packets = nullptr;  ///< by step; null if no level has packets
  Fifo* on_wire = nullptr;         ///< by connection; null likewise
  StepTimes* times = nullptr;      ///< by step; null: not kept
  int number = 0;
  bool started = false;
  bool awaited = false;   ///< an event, or a place in the line for a processor, will wake it
  Fifo posts;             ///< messages whose turn has come
  Fifo locals;            ///< folds, copies and a computation that are ready
  Fifo sent;              ///< sends whose buffers were free at once
  Fifo arrivals;          ///< messages for the processor to handle
  std::int64_t busy = 0;  ///< end of its work
  std::int64_t finish = 0;
  Computing computing;
  std::uint32_t left = 0;       ///< incomplete steps
  std::uint32_t each = 0;       ///< steps of one call
  std::uint32_t call_left = 0;  ///< incomplete steps of the current call
  std::uint32_t call = 0;       ///< the first step of the current call
};

/// The line of ranks that share processors.
struct Processors {
  bool shared = false;
  int free = 0;
  std::vector<std::uint32_t> line;  ///< the next rank in it
  std::uint32_t head = none, tail = none;
};

/// The changing state of a simulation. Each part belongs to a domain: ranks that share wires or
/// processors. Domains interact only by messages, which take at least `lookahead`.
struct State {
  State(const Program& program, const Network& network, const std::vector<int>& host_of,
        std::vector<StepTimes>* times);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  RankState& rank(int r) { return ranks[static_cast<std::size_t>(r)]; }
  const RankState& rank(int r) const { return ranks[static_cast<std::size_t>(r)]; }
  std::size_t host(int r) const {
    return static_cast<std::size_t>(host_of[static_cast<std::size_t>(r)]);
  }

  const std::vector<int>& host_of;
  std::vector<std::uint32_t> domain_of;  ///< each rank's
  std::vector<EventQueue> queues;        ///< of each domain
  std::int64_t lookahead;                ///< ns; `never` if there is only one domain
  std::vector<int> host_ranks;           ///< number of ranks on its host
  std::vector<RankState> ranks;
  std::vector<StepState> steps;
  std::vector<ChannelState> channels;
  std::vector<PacketState> packets;
  std::vector<Fifo> on_wire;
  std::vector<Wire> rank_wires, host_wires;  ///< outgoing and incoming, alternating
  std::vector<HostBytes> host_bytes;
  Processors processors;
};

/// Throws Error(invalid_argument) if a rank has not ended, and names who waits for whom.
void check_finished(const Program& program, const State& state);

/// Bytes of this state for a rank of this shape.
std::int64_t state_bytes(const Shape& shape, const Network& network);

}  // namespace baton::simulating
