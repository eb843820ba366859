#include "engine.hpp"

#include <algorithm>

namespace baton::simulating {

Engine::Engine(State& state, const Network& network, const SimulateOptions& options,
               std::size_t threads)
    : state_(state),
      within_(network.within),
      across_(network.across),
      fold_(network.fold),
      copy_(network.copy),
      call_(network.call),
      window_(static_cast<std::uint32_t>(std::clamp(options.window, 1, 0xffff))),
      calls_(static_cast<std::uint32_t>(options.calls)),
      panel_(options.panel),
      computes_apart_(options.computes_apart),
      outboxes_(threads) {}

void Engine::start(int rank) {
  at(state_.domain_of[static_cast<std::size_t>(rank)]);
  wake(state_.rank(rank), 0);
}

void Engine::follow(std::uint32_t domain, std::int64_t end) {
  at(domain);
  while (!queue_->empty() && queue_->next().time < end) handle(queue_->pop());
}

void Engine::at(std::uint32_t domain) {
  domain_ = domain;
  queue_ = &state_.queues[domain];
}

void Engine::push(const Event& event) {
  const std::uint32_t domain = state_.domain_of[static_cast<std::size_t>(event.rank())];
  if (domain == domain_) return queue_->push(event);
  earliest_sent_ = std::min(earliest_sent_, event.time);
  outboxes_[thread_of(domain, outboxes_.size())].push_back(event);
}

void Engine::push(RankState& rank, Fifo& fifo, std::uint32_t step) {
  rank.steps[step].next = none;
  if (fifo.empty()) {
    fifo.head = step;
  } else {
    rank.steps[fifo.tail].next = step;
  }
  fifo.tail = step;
}

std::uint32_t Engine::take(RankState& rank, Fifo& fifo) {
  const std::uint32_t step = fifo.head;
  fifo.head = rank.steps[step].next;
  return step;
}

void Engine::wake(RankState& rank, std::int64_t time) {
  if (rank.computing.running) return interrupt(rank, time);
  if (rank.awaited) return;
  Processors& processors = state_.processors;
  if (time < rank.busy) {
    rank.awaited = true;
    push({rank.busy, EventKind::free_again, rank.number});
  } else if (!processors.shared) {
    batch(rank, time);
  } else if (processors.free > 0) {
    --processors.free;
    batch(rank, time);
  } else {
    rank.awaited = true;
    const auto last = static_cast<std::uint32_t>(rank.number);
    (processors.head == none ? processors.head : processors.line[processors.tail]) = last;
    processors.line[last] = none;
    processors.tail = last;
  }
}

void Engine::free_processor(RankState& rank, std::int64_t time) {
  rank.awaited = false;
  if (!rank.arrivals.empty()) return batch(rank, time);
  pass_processor(time);
}

void Engine::pass_processor(std::int64_t time) {
  Processors& processors = state_.processors;
  if (!processors.shared) return;
  if (processors.head == none) {
    ++processors.free;
    return;
  }
  RankState& next = state_.ranks[processors.head];
  processors.head = processors.line[processors.head];
  next.awaited = false;
  batch(next, time);
}

void Engine::batch(RankState& rank, std::int64_t time) {
  now_ = time;
  if (!rank.started) begin(rank);
  for (;;) {
    for (;;) {
      if (!rank.posts.empty()) {
        post(rank, take(rank, rank.posts));
      } else if (!rank.locals.empty()) {
        work(rank, take(rank, rank.locals));
      } else if (rank.computing.step != none && !rank.computing.begun && !rank.computing.looks) {
        rank.busy = now_;
        return compute(rank);  // messages wait
      } else if (!rank.sent.empty()) {
        leave(rank, take(rank, rank.sent));
      } else {
        break;
      }
    }
    if (now_ != time || rank.arrivals.empty()) break;
    deal_with(rank, take(rank, rank.arrivals));
  }
  rank.busy = now_;
  if (rank.arrivals.empty()) rank.computing.looks = false;
  if (rank.left == 0 && rank.finish == 0) rank.finish = now_;
  if (rank.computing.step != none && rank.arrivals.empty()) return compute(rank);
  if (state_.processors.shared || !rank.arrivals.empty()) {
    rank.awaited = true;
    push({now_, EventKind::free_again, rank.number});
  }
}

void Engine::begin(RankState& rank) {
  rank.started = true;
  rank.left = rank.shape->size();
  rank.each = rank.call_left = rank.left / calls_;
  now_ += call_;
  for (std::uint32_t s = 0; s < rank.shape->channels.size(); ++s) post_ready(rank, s);
  for (std::uint32_t i = 0; i < rank.call_left; ++i) {
    if (fixed(rank, i).message() || rank.steps[i].waits != 0) continue;
    if (rank.times) rank.times[i].posted = now_;
    push(rank, rank.locals, i);
  }
}

void Engine::begin_call(RankState& rank) {
  rank.call += rank.each;
  rank.call_left = rank.each;
  now_ += call_;
  for (std::uint32_t i = rank.call; i < rank.call + rank.each; ++i) {
    if (fixed(rank, i).gated) release(rank, i);
  }
}

/// `step` waits for one step less.
void Engine::release(RankState& rank, std::uint32_t step) {
  if (--rank.steps[step].waits != 0) return;
  const Shape::Step& s = fixed(rank, step);
  if (s.message()) return post_ready(rank, s.channel);
  if (rank.times) rank.times[step].posted = now_;
  push(rank, rank.locals, step);
}

void Engine::deal_with(RankState& rank, std::uint32_t step) {
  ++events_;
  const std::int64_t bytes = fixed(rank, step).bytes;
  LevelTimes& times = level(channel_of(rank, step));
  StepState& s = rank.steps[step];
  switch (s.at()) {
    case Stage::answer:
      s.go(Stage::posted);
      now_ += times.level.handshake;
      return announce(rank, step, now_, EventKind::answered);
    case Stage::take:
      now_ += times.receive.of(bytes);
      if (rank.times) rank.times[step].end = now_;
      return leave(rank, step);
    case Stage::send_data: {
      const std::int64_t begin = now_ + times.level.handshake;
      now_ = begin + times.send.of(bytes) - times.send.zero();
      return put_on_wire(rank, step, begin, now_);
    }
    default:
      return leave(rank, step);
  }
}

void Engine::post(RankState& rank, std::uint32_t step) {
  ++events_;
  if (rank.times) rank.times[step].posted = now_;
  if (fixed(rank, step).kind == StepKind::send) return post_send(rank, step);
  now_ += level(channel_of(rank, step)).level.post;
  if (rank.times) rank.times[step].start = now_;
  StepState& s = rank.steps[step];
  if (s.at() == Stage::here) {
    s.go(Stage::take);
    push(rank, rank.arrivals, step);
  } else if (s.at() == Stage::announced) {
    s.go(Stage::answer);
    push(rank, rank.arrivals, step);
  } else {
    s.go(Stage::posted);
  }
}

void Engine::post_send(RankState& rank, std::uint32_t step) {
  const std::int64_t bytes = fixed(rank, step).bytes;
  LevelTimes& times = level(channel_of(rank, step));
  const std::int64_t begin = now_ + times.send.zero();
  if (bytes > times.level.eager) {
    now_ = begin;
    rank.steps[step].go(Stage::posted);
    announce(rank, step, now_, EventKind::announced);
  } else {
    now_ += times.send.of(bytes);
    rank.steps[step].go(Stage::sent);
    put_on_wire(rank, step, begin, now_);
    push(rank, rank.sent, step);
  }
  if (rank.times) rank.times[step].start = rank.times[step].end = now_;
}

void Engine::post_ready(RankState& rank, std::uint32_t channel) {
  const scheduling::Channel& messages = rank.shape->channels[channel];
  ChannelState& s = rank.channels[channel];
  while (s.next < messages.count() && s.in_flight < window_) {
    const std::uint32_t step = rank.shape->messages[messages.first + s.next];
    if (rank.steps[step].waits != 0) return;
    ++s.next;
    ++s.in_flight;
    push(rank, rank.posts, step);
  }
}

void Engine::leave(RankState& rank, std::uint32_t step) {
  rank.steps[step].go(Stage::done);
  const std::uint32_t channel = fixed(rank, step).channel;
  --rank.channels[channel].in_flight;
  post_ready(rank, channel);
  complete(rank, step);
}

void Engine::complete(RankState& rank, std::uint32_t step) {
  --rank.left;
  --rank.call_left;
  const std::uint32_t last = fixed(rank, step + 1).first_dependent;
  for (std::uint32_t d = fixed(rank, step).first_dependent; d < last; ++d) {
    release(rank, rank.shape->dependents[d]);
  }
  if (rank.call_left == 0 && rank.left > 0) begin_call(rank);
}

void Engine::work(RankState& rank, std::uint32_t step) {
  ++events_;
  const Shape::Step& s = fixed(rank, step);
  if (s.kind == StepKind::compute) {  // as soon as there is nothing else to do
    Computing& its = rank.computing;
    its = {.step = step, .looks = its.looks, .left = s.bytes, .stretch = its.stretch};
    return;
  }
  const std::int64_t begin = now_;
  now_ += s.kind == StepKind::fold ? fold_.of(s.bytes) : copy_.of(s.bytes);
  if (rank.times) {
    rank.times[step].start = begin;
    rank.times[step].end = now_;
  }
  rank.steps[step].go(Stage::done);
  complete(rank, step);
}

}  // namespace baton::simulating
