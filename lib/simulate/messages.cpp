// What happens to messages between their two processors, and the sentence where nothing happens any
// more.

#include <fmt/format.h>

#include <algorithm>

#include "baton/error.hpp"
#include "engine.hpp"

namespace baton::simulating {

namespace {

/// FlatStep::moment of a step whose announcement or answer has come through the last wire.
constexpr std::int64_t through = -1;

}  // namespace

// ------------------------------------------------------------------------

Wire& Engine::wire(int rank, bool across, bool in) {
  const auto r = static_cast<std::size_t>(rank);
  if (!across) return rank_wires_[2 * r + in];
  return host_wires_[2 * static_cast<std::size_t>(host_of_[r]) + in];
}

void Engine::put_on_wire(std::uint32_t send, std::int64_t time) {
  const Stream& stream = program_.streams[steps_[send].stream];
  if (in_packets(stream)) {
    Fifo& queue = on_wire_[steps_[send].stream];
    ready_[send] = time;
    const bool first = queue.empty();
    (first ? queue.head : behind_[queue.tail]) = send;
    queue.tail = send;
    if (first) queue_.push({time, EventKind::inject, send});
    return;
  }
  const auto host = static_cast<std::size_t>(host_of_[static_cast<std::size_t>(stream.rank)]);
  // Other ranks of the host may use its wire until then.
  if (stream.across && host_ranks_[host] > 1) {
    queue_.push({time, EventKind::inject, send});
  } else {
    inject(send, time);
  }
}

/// `moment` is when the sender's processor has copied it.
void Engine::inject(std::uint32_t send, std::int64_t time) {
  FlatStep& s = steps_[send];
  const Stream& stream = program_.streams[s.stream];
  if (in_packets(stream)) return inject_packet(send, time);
  ++events_;
  LevelTimes& times = level(stream);
  const Passage passage = wire(stream.rank, stream.across, false).pass(time, {s.bytes, 0}, times);
  const std::int64_t last = std::max(passage.last, s.moment);
  s.moment = last + times.level.latency;
  queue_.push({passage.first + times.level.latency, EventKind::head, s.partner});
  left_wire(send, last);
}

Load Engine::packet_of(const FlatStep& step, std::int64_t passed, const LevelTimes& level) {
  return {std::min(level.level.packet, step.bytes - passed), passed};
}

/// The next packet of a message; then it is the turn of others.
void Engine::inject_packet(std::uint32_t send, std::int64_t time) {
  ++events_;
  FlatStep& s = steps_[send];
  const Stream& stream = program_.streams[s.stream];
  LevelTimes& times = level(stream);
  const Load load = packet_of(s, passed_[send], times);
  const Passage passage = wire(stream.rank, stream.across, false).pass(time, load, times);
  passed_[send] += load.bytes;
  const bool all = passed_[send] == s.bytes;
  const std::int64_t last = all ? std::max(passage.last, s.moment) : passage.last;
  // Its first byte may be there when this rate brings the last one there in time.
  const std::int64_t length = passage.last - passage.first;
  queue_.push({last - length + times.level.latency, EventKind::head, s.partner});
  if (!all) return queue_.push({passage.last, EventKind::inject, send});
  s.moment = last + times.level.latency;
  left_wire(send, last);
  Fifo& queue = on_wire_[s.stream];
  if (queue.head == queue.tail) {
    queue.head = none;
  } else {
    queue.head = behind_[send];
    queue_.push({std::max(passage.last, ready_[queue.head]), EventKind::inject, queue.head});
  }
}

void Engine::left_wire(std::uint32_t send, std::int64_t time) {
  const FlatStep& s = steps_[send];
  const Stream& stream = program_.streams[s.stream];
  if (s.bytes > level(stream).level.eager) queue_.push({time, EventKind::sent, send});
  if (stream.across) {
    const auto from = static_cast<std::size_t>(stream.rank),
               to = static_cast<std::size_t>(stream.peer);
    host_bytes_[static_cast<std::size_t>(host_of_[from])].sent += s.bytes;
    host_bytes_[static_cast<std::size_t>(host_of_[to])].received += s.bytes;
  } else {
    bytes_within_ += s.bytes;
  }
}

/// Tells the other side of `step` by a message without bytes.
void Engine::announce(std::uint32_t step, std::int64_t time, EventKind kind) {
  const Stream& stream = program_.streams[steps_[step].stream];
  LevelTimes& times = level(stream);
  const Passage passage = wire(stream.rank, stream.across, false).pass(time, {}, times);
  queue_.push({passage.last + times.level.latency, kind, steps_[step].partner});
}

/// The first byte of a message, or of a packet, is at the receiver's wire.
void Engine::arrive(std::uint32_t recv, std::int64_t time) {
  FlatStep& s = steps_[recv];
  const FlatStep& send = steps_[s.partner];
  const Stream& stream = program_.streams[s.stream];
  LevelTimes& times = level(stream);
  Load load{s.bytes, 0};
  if (in_packets(stream)) {
    load = packet_of(s, passed_[recv], times);
    passed_[recv] += load.bytes;
  }
  const Passage passage = wire(stream.rank, stream.across, true).pass(time, load, times);
  if (load.before + load.bytes < s.bytes) return;
  const std::int64_t last = std::max(passage.last, send.moment);
  // What the processor does for each byte ends with the last one, if it begins in time.
  const std::int64_t per_byte = times.receive.of(s.bytes) - times.receive.zero();
  std::int64_t& before = program_.streams[send.stream].last_arrival;
  before = std::max({before, time, last - per_byte});
  if (before == time) return handle({time, EventKind::delivered, recv});
  queue_.push({before, EventKind::delivered, recv});
}

void Engine::enqueue(std::uint32_t step, Stage stage, std::int64_t time) {
  steps_[step].stage = stage;
  const int rank = rank_of(step);
  push(ranks_[static_cast<std::size_t>(rank)].arrivals, step);
  wake(rank, time);
}

void Engine::handle(const Event& event) {
  const std::uint32_t number = event.number();
  const std::int64_t time = event.time;
  if (event.kind() == EventKind::free_again) return free_processor(static_cast<int>(number), time);
  FlatStep& s = steps_[number];
  switch (event.kind()) {
    case EventKind::inject:
      return inject(number, time);
    case EventKind::head:
      ++events_;
      return arrive(number, time);
    case EventKind::delivered:
      ++events_;
      if (s.stage == Stage::posted) return enqueue(number, Stage::take, time);
      s.stage = Stage::here;
      return;
    case EventKind::announced:
    case EventKind::answered: {
      if (s.moment != through) {
        const Stream& stream = program_.streams[s.stream];
        const Passage passage =
            wire(stream.rank, stream.across, true).pass(time, {}, level(stream));
        s.moment = through;
        if (passage.last > time) return queue_.push({passage.last, event.kind(), number});
      }
      s.moment = 0;
      ++events_;
      if (event.kind() == EventKind::answered) return enqueue(number, Stage::send_data, time);
      if (s.stage == Stage::posted) return enqueue(number, Stage::answer, time);
      s.stage = Stage::announced;
      return;
    }
    default:
      ++events_;
      if (times_) (*times_)[number].end = std::max((*times_)[number].end, time);
      return enqueue(number, Stage::sent, time);
  }
}

void Engine::fail_stuck() const {
  const auto awaited = [&](std::size_t r) {  // what a rank waits for that is not complete
    const std::uint32_t last = program_.first_step[r + 1];
    for (std::uint32_t i = program_.first_step[r]; i < last; ++i) {
      if (steps_[i].message() && steps_[i].waits == 0 && steps_[i].stage != Stage::done) return i;
    }
    return none;
  };
  std::vector<bool> seen(ranks_.size());
  std::size_t r = 0;
  while (ranks_[r].left == 0) ++r;
  std::string text;
  constexpr int most = 8;
  for (int links = 0; links < most; ++links) {
    const std::uint32_t step = awaited(r);
    if (step == none) break;
    const auto peer = static_cast<std::size_t>(program_.streams[steps_[step].stream].peer);
    text += fmt::format("{} waits for rank {} in {}",
                        links == 0 ? fmt::format("rank {}", r) : ", which", peer,
                        program_.phrase(step));
    if (seen[r]) break;
    seen[r] = true;
    r = peer;
    if (seen[r]) break;
  }
  throw Error(ErrorCode::invalid_argument, "simulate: ranks wait for ever: " + text);
}

}  // namespace baton::simulating
