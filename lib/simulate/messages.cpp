// The way of messages between two processors.

#include <algorithm>

#include "engine.hpp"

namespace baton::simulating {
namespace {

/// Event::moment of an announcement or answer that has passed the last wire.
constexpr std::int64_t through = -1;

/// The next part of a message to pass, after `passed` bytes.
Load packet_of(std::int64_t bytes, std::int64_t passed, const LevelTimes& level) {
  return {std::min(level.level.packet, bytes - passed), passed};
}

}  // namespace

Wire& Engine::wire(const RankState& rank, bool across, bool in) {
  if (!across) return state_.rank_wires[2 * static_cast<std::size_t>(rank.number) + in];
  return state_.host_wires[2 * state_.host(rank.number) + in];
}

bool Engine::shares_wire(const RankState& rank, const ChannelState& channel) const {
  return channel.across && state_.host_ranks[state_.host(rank.number)] > 1;
}

void Engine::put_on_wire(RankState& rank, std::uint32_t send, std::int64_t time,
                         std::int64_t moment) {
  const ChannelState& channel = channel_of(rank, send);
  if (in_packets(channel)) {
    Fifo& queue = rank.on_wire[channel.connection];
    rank.packets[send].ready = time;
    rank.packets[send].moment = moment;
    const bool first = queue.empty();
    (first ? queue.head : rank.packets[queue.tail].behind) = send;
    queue.tail = send;
    if (first) push({time, EventKind::inject, rank.number, send});
    return;
  }
  // Until then, other ranks of the host may use its wire.
  if (shares_wire(rank, channel)) {
    push({time, EventKind::inject, rank.number, send, moment});
  } else {
    inject(rank, send, time, moment);
  }
}

void Engine::inject(RankState& rank, std::uint32_t send, std::int64_t time, std::int64_t moment) {
  const ChannelState& channel = channel_of(rank, send);
  if (in_packets(channel)) return inject_packet(rank, send, time);
  ++events_;
  LevelTimes& times = level(channel);
  const Shape::Step& s = fixed(rank, send);
  const Passage passage = wire(rank, channel.across, false).pass(time, {s.bytes, 0}, times);
  const std::int64_t last = std::max(passage.last, moment), latency = times.level.latency;
  push({passage.first + latency, EventKind::head, channel.peer, channel.partners[s.place],
        last + latency});
  left_wire(rank, send, last);
}

/// Sends the next packet of a message; then other messages take their turn.
void Engine::inject_packet(RankState& rank, std::uint32_t send, std::int64_t time) {
  ++events_;
  const Shape::Step& s = fixed(rank, send);
  PacketState& packet = rank.packets[send];
  const ChannelState& channel = channel_of(rank, send);
  LevelTimes& times = level(channel);
  const Load load = packet_of(s.bytes, packet.passed, times);
  const Passage passage = wire(rank, channel.across, false).pass(time, load, times);
  packet.passed += load.bytes;
  const bool all = packet.passed == s.bytes;
  const std::int64_t last = all ? std::max(passage.last, packet.moment) : passage.last;
  // The earliest arrival of the first byte such that the last one is in time at this rate.
  const std::int64_t length = passage.last - passage.first, latency = times.level.latency;
  push({last - length + latency, EventKind::head, channel.peer, channel.partners[s.place],
        last + latency});
  if (!all) return push({passage.last, EventKind::inject, rank.number, send});
  left_wire(rank, send, last);
  Fifo& queue = rank.on_wire[channel.connection];
  if (queue.head == queue.tail) {
    queue.head = none;
  } else {
    queue.head = packet.behind;
    push({std::max(passage.last, rank.packets[queue.head].ready), EventKind::inject, rank.number,
          queue.head});
  }
}

void Engine::left_wire(RankState& rank, std::uint32_t send, std::int64_t time) {
  const std::int64_t bytes = fixed(rank, send).bytes;
  const ChannelState& channel = channel_of(rank, send);
  if (bytes > level(channel).level.eager) push({time, EventKind::sent, rank.number, send});
  if (channel.across) {
    state_.host_bytes[state_.host(rank.number)].sent += bytes;
  } else {
    bytes_within_ += bytes;
  }
}

/// Tells the other side of `step`, by a message without bytes.
void Engine::announce(RankState& rank, std::uint32_t step, std::int64_t time, EventKind kind) {
  const ChannelState& channel = channel_of(rank, step);
  // Until then, other messages may use the wire.
  if (shares_wire(rank, channel) || in_packets(channel)) {
    push({time, EventKind::tell, rank.number, step, static_cast<std::int64_t>(kind)});
  } else {
    tell(rank, step, time, kind);
  }
}

/// An announcement or answer goes onto the wire.
void Engine::tell(RankState& rank, std::uint32_t step, std::int64_t time, EventKind kind) {
  const ChannelState& channel = channel_of(rank, step);
  LevelTimes& times = level(channel);
  const Passage passage = wire(rank, channel.across, false).pass(time, {}, times);
  push({passage.last + times.level.latency, kind, channel.peer,
        channel.partners[fixed(rank, step).place]});
}

/// The first byte of a message or packet is at the receiver's wire. The last one arrives at
/// `moment` at the earliest.
void Engine::arrive(RankState& rank, std::uint32_t recv, std::int64_t time, std::int64_t moment) {
  ++events_;
  const std::int64_t bytes = fixed(rank, recv).bytes;
  ChannelState& channel = channel_of(rank, recv);
  LevelTimes& times = level(channel);
  Load load{bytes, 0};
  if (in_packets(channel)) {
    load = packet_of(bytes, rank.packets[recv].passed, times);
    rank.packets[recv].passed += load.bytes;
  }
  const Passage passage = wire(rank, channel.across, true).pass(time, load, times);
  if (load.before + load.bytes < bytes) return;
  if (channel.across) state_.host_bytes[state_.host(rank.number)].received += bytes;
  const std::int64_t last = std::max(passage.last, moment);
  // The processor's work for each byte ends with the last byte, if it begins in time.
  const std::int64_t per_byte = times.receive.of(bytes) - times.receive.zero();
  channel.last_arrival = std::max({channel.last_arrival, time, last - per_byte});
  if (channel.last_arrival == time) return delivered(rank, recv, time);
  push({channel.last_arrival, EventKind::delivered, rank.number, recv});
}

void Engine::delivered(RankState& rank, std::uint32_t recv, std::int64_t time) {
  ++events_;
  if (rank.steps[recv].at() == Stage::posted) return enqueue(rank, recv, Stage::take, time);
  rank.steps[recv].go(Stage::here);
}

/// An announcement or its answer has arrived.
void Engine::heard(RankState& rank, const Event& event) {
  const std::uint32_t step = event.step();
  if (event.moment != through) {
    const ChannelState& channel = channel_of(rank, step);
    const Passage passage = wire(rank, channel.across, true).pass(event.time, {}, level(channel));
    if (passage.last > event.time)
      return push({passage.last, event.kind(), rank.number, step, through});
  }
  ++events_;
  if (event.kind() == EventKind::answered) return enqueue(rank, step, Stage::send_data, event.time);
  if (rank.steps[step].at() == Stage::posted) return enqueue(rank, step, Stage::answer, event.time);
  rank.steps[step].go(Stage::announced);
}

void Engine::enqueue(RankState& rank, std::uint32_t step, Stage stage, std::int64_t time) {
  rank.steps[step].go(stage);
  push(rank, rank.arrivals, step);
  wake(rank, time);
}

void Engine::handle(const Event& event) {
  RankState& rank = state_.rank(event.rank());
  const std::uint32_t step = event.step();
  const std::int64_t time = event.time;
  switch (event.kind()) {
    case EventKind::free_again:
      return free_processor(rank, time);
    case EventKind::tell:
      return tell(rank, step, time, static_cast<EventKind>(event.moment));
    case EventKind::inject:
      return inject(rank, step, time, event.moment);
    case EventKind::head:
      return arrive(rank, step, time, event.moment);
    case EventKind::delivered:
      return delivered(rank, step, time);
    case EventKind::announced:
    case EventKind::answered:
      return heard(rank, event);
    case EventKind::panel:
      return end_panel(rank, event);
    case EventKind::computed:
      return end_computation(rank, event);
    case EventKind::given_back:
      return pass_processor(time);
    case EventKind::sent:
      ++events_;
      if (rank.times) rank.times[step].end = std::max(rank.times[step].end, time);
      return enqueue(rank, step, Stage::sent, time);
  }
}

}  // namespace baton::simulating
