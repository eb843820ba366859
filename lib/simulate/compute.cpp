// Computations: the processor has them in stretches, whenever there is nothing else to do.

#include <algorithm>

#include "engine.hpp"

namespace baton::simulating {

/// Begins a stretch at the end of a batch.
void Engine::compute(RankState& rank) {
  Computing& its = rank.computing;
  if (!its.begun && rank.times) rank.times[its.step].start = now_;
  its.begun = its.running = true;
  its.apart = computes_apart_ && its.left > 0;
  its.wanted = its.looks = false;
  its.since = now_;
  rank.awaited = true;
  rank.busy = now_ + its.left;
  push({rank.busy, EventKind::computed, rank.number, its.step, ++its.stretch});
  if (!rank.sent.empty() || !rank.arrivals.empty()) interrupt(rank, now_);
  if (its.apart) push({now_, EventKind::given_back, rank.number});
}

void Engine::resume(RankState& rank, std::int64_t time) {
  if (!rank.computing.apart) return batch(rank, time);
  rank.busy = time;
  wake(rank, time);
}

void Engine::interrupt(RankState& rank, std::int64_t time) {
  Computing& its = rank.computing;
  if (panel_ <= 0 || its.wanted || !fixed(rank, its.step).advances) return;
  const std::int64_t panels = (time - its.since + panel_ - 1) / panel_;
  const std::int64_t end = its.since + std::max<std::int64_t>(panels, 1) * panel_;
  if (end >= rank.busy) return;
  its.wanted = true;
  push({end, EventKind::panel, rank.number, its.step, its.stretch});
}

void Engine::end_panel(RankState& rank, const Event& event) {
  Computing& its = rank.computing;
  if (!its.running || its.stretch != event.moment) return;
  its.left -= event.time - its.since;
  its.running = rank.awaited = false;
  resume(rank, event.time);
}

void Engine::end_computation(RankState& rank, const Event& event) {
  Computing& its = rank.computing;
  if (!its.running || its.stretch != event.moment) return;
  const std::uint32_t step = its.step;
  its.running = rank.awaited = false;
  its.step = none;
  its.looks = fixed(rank, step).advances;
  now_ = event.time;
  if (rank.times) rank.times[step].end = now_;
  rank.steps[step].go(Stage::done);
  complete(rank, step);
  resume(rank, now_);
}

}  // namespace baton::simulating
