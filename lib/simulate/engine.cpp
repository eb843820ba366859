#include "engine.hpp"

#include <algorithm>

namespace baton::simulating {

Engine::Engine(Program& program, const Network& network, const std::vector<int>& host_of,
               const SimulateOptions& options, std::vector<StepTimes>* times)
    : program_(program),
      steps_(program.steps),
      times_(times),
      within_(network.within),
      across_(network.across),
      fold_(network.fold),
      copy_(network.copy),
      call_(network.call),
      window_(static_cast<std::uint32_t>(std::clamp(options.window, 1, 0xffff))),
      calls_(static_cast<std::uint32_t>(options.calls)),
      host_of_(host_of),
      ranks_(static_cast<std::size_t>(program.ranks())),
      rank_wires_(2 * ranks_.size()),
      shared_processors_(network.processors > 0),
      free_processors_(network.processors) {
  const int hosts = 1 + *std::max_element(host_of.begin(), host_of.end());
  host_ranks_.resize(static_cast<std::size_t>(hosts));
  for (const int host : host_of) ++host_ranks_[static_cast<std::size_t>(host)];
  host_bytes_.resize(host_ranks_.size());
  host_wires_.resize(2 * host_ranks_.size());
  if (shared_processors_) line_.resize(ranks_.size(), none);
  if (network.within.packet > 0 || network.across.packet > 0) {
    passed_.resize(steps_.size());
    ready_.resize(steps_.size());
    behind_.resize(steps_.size(), none);
    on_wire_.resize(program.streams.size());
  }
  for (Stream& stream : program.streams) {
    stream.across = host_of[static_cast<std::size_t>(stream.rank)] !=
                    host_of[static_cast<std::size_t>(stream.peer)];
  }
}

void Engine::run() {
  for (int r = 0; r < program_.ranks(); ++r) wake(r, 0);
  while (!queue_.empty()) handle(queue_.pop());
  for (const Rank& rank : ranks_) {
    if (rank.left > 0) fail_stuck();
  }
}

void Engine::push(Fifo& fifo, std::uint32_t step) {
  steps_[step].next = none;
  if (fifo.empty()) {
    fifo.head = step;
  } else {
    steps_[fifo.tail].next = step;
  }
  fifo.tail = step;
}

std::uint32_t Engine::take(Fifo& fifo) {
  const std::uint32_t step = fifo.head;
  fifo.head = steps_[step].next;
  return step;
}

// --- a rank's processor
// ---------------------------------------------------------------------------

void Engine::wake(int r, std::int64_t time) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  if (rank.awaited) return;
  if (time < rank.busy) {
    rank.awaited = true;
    queue_.push({rank.busy, EventKind::free_again, static_cast<std::uint32_t>(r)});
  } else if (!shared_processors_) {
    batch(r, time);
  } else if (free_processors_ > 0) {
    --free_processors_;
    batch(r, time);
  } else {
    rank.awaited = true;
    const auto last = static_cast<std::uint32_t>(r);
    (line_head_ == none ? line_head_ : line_[line_tail_]) = last;
    line_[last] = none;
    line_tail_ = last;
  }
}

void Engine::free_processor(int r, std::int64_t time) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  rank.awaited = false;
  if (!rank.arrivals.empty()) return batch(r, time);
  if (!shared_processors_) return;
  if (line_head_ == none) {
    ++free_processors_;
    return;
  }
  const std::uint32_t next = line_head_;
  line_head_ = line_[next];
  ranks_[next].awaited = false;
  batch(static_cast<int>(next), time);
}

void Engine::batch(int r, std::int64_t time) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  now_ = time;
  do {
    if (!rank.started) {
      begin(r);
    } else {
      deal_with(rank, take(rank.arrivals));
    }
    for (;;) {
      if (!rank.posts.empty()) {
        post(rank, take(rank.posts));
      } else if (!rank.locals.empty()) {
        work(rank, take(rank.locals));
      } else if (!rank.sent.empty()) {
        leave(rank, take(rank.sent));
      } else {
        break;
      }
    }
  } while (now_ == time && !rank.arrivals.empty());
  rank.busy = now_;
  if (rank.left == 0 && rank.finish == 0) rank.finish = now_;
  if (shared_processors_ || !rank.arrivals.empty()) {
    rank.awaited = true;
    queue_.push({now_, EventKind::free_again, static_cast<std::uint32_t>(r)});
  }
}

void Engine::begin(int r) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  const auto at = static_cast<std::size_t>(r);
  rank.started = true;
  rank.call = program_.first_step[at];
  rank.left = program_.first_step[at + 1] - rank.call;
  rank.each = rank.call_left = rank.left / calls_;
  now_ += call_;
  for (std::uint32_t s = program_.first_stream[at]; s < program_.first_stream[at + 1]; ++s) {
    post_ready(rank, s);
  }
  for (std::uint32_t i = rank.call; i < rank.call + rank.call_left; ++i) {
    if (steps_[i].message() || steps_[i].waits != 0) continue;
    if (times_) (*times_)[i].posted = now_;
    push(rank.locals, i);
  }
}

void Engine::begin_call(Rank& rank) {
  rank.call += rank.each;
  rank.call_left = rank.each;
  now_ += call_;
  for (std::uint32_t i = rank.call; i < rank.call + rank.each; ++i) {
    if (steps_[i].gated) release(rank, i);
  }
}

/// One step less that `step` waits for.
void Engine::release(Rank& rank, std::uint32_t step) {
  FlatStep& s = steps_[step];
  if (--s.waits != 0) return;
  if (s.message()) {
    post_ready(rank, s.stream);
  } else {
    if (times_) (*times_)[step].posted = now_;
    push(rank.locals, step);
  }
}

void Engine::deal_with(Rank& rank, std::uint32_t step) {
  ++events_;
  FlatStep& s = steps_[step];
  LevelTimes& times = level(program_.streams[s.stream]);
  switch (s.stage) {
    case Stage::answer:
      s.stage = Stage::posted;
      now_ += times.level.handshake;
      return announce(step, now_, EventKind::answered);
    case Stage::take:
      now_ += times.receive.of(s.bytes);
      if (times_) (*times_)[step].end = now_;
      return leave(rank, step);
    case Stage::send_data: {
      const std::int64_t begin = now_ + times.level.handshake;
      now_ = begin + times.send.of(s.bytes) - times.send.zero();
      s.moment = now_;
      return put_on_wire(step, begin);
    }
    default:
      return leave(rank, step);
  }
}

void Engine::post(Rank& rank, std::uint32_t step) {
  ++events_;
  if (times_) (*times_)[step].posted = now_;
  FlatStep& s = steps_[step];
  if (s.kind == StepKind::send) return post_send(rank, step);
  now_ += level(program_.streams[s.stream]).level.post;
  if (times_) (*times_)[step].start = now_;
  if (s.stage == Stage::here) {
    s.stage = Stage::take;
    push(rank.arrivals, step);
  } else if (s.stage == Stage::announced) {
    s.stage = Stage::answer;
    push(rank.arrivals, step);
  } else {
    s.stage = Stage::posted;
  }
}

void Engine::post_send(Rank& rank, std::uint32_t step) {
  FlatStep& s = steps_[step];
  LevelTimes& times = level(program_.streams[s.stream]);
  const std::int64_t begin = now_ + times.send.zero();
  if (s.bytes > times.level.eager) {
    now_ = begin;
    s.stage = Stage::posted;
    announce(step, now_, EventKind::announced);
  } else {
    now_ += times.send.of(s.bytes);
    s.moment = now_;
    s.stage = Stage::sent;
    put_on_wire(step, begin);
    push(rank.sent, step);
  }
  if (times_) (*times_)[step].start = (*times_)[step].end = now_;
}

void Engine::post_ready(Rank& rank, std::uint32_t stream) {
  Stream& s = program_.streams[stream];
  while (s.next < s.last && s.in_flight < window_) {
    const std::uint32_t step = program_.messages[s.next];
    if (steps_[step].waits != 0) return;
    ++s.next;
    ++s.in_flight;
    push(rank.posts, step);
  }
}

void Engine::leave(Rank& rank, std::uint32_t step) {
  steps_[step].stage = Stage::done;
  const std::uint32_t stream = steps_[step].stream;
  --program_.streams[stream].in_flight;
  post_ready(rank, stream);
  complete(rank, step);
}

void Engine::complete(Rank& rank, std::uint32_t step) {
  --rank.left;
  --rank.call_left;
  const std::uint32_t last = steps_[step + 1].first_dependent;
  for (std::uint32_t d = steps_[step].first_dependent; d < last; ++d) {
    release(rank, program_.dependents[d]);
  }
  if (rank.call_left == 0 && rank.left > 0) begin_call(rank);
}

void Engine::work(Rank& rank, std::uint32_t step) {
  ++events_;
  FlatStep& s = steps_[step];
  const std::int64_t begin = now_;
  now_ += s.kind == StepKind::fold ? fold_.of(s.bytes) : copy_.of(s.bytes);
  if (times_) {
    (*times_)[step].start = begin;
    (*times_)[step].end = now_;
  }
  s.stage = Stage::done;
  complete(rank, step);
}

}  // namespace baton::simulating
