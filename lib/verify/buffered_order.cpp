#include "buffered_order.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "findings.hpp"
#include "order.hpp"

namespace baton::proving {

/// Calls visit(other) for each step that `step` waits for.
template <class Visit>
void BufferedOrder::for_waits(const Program& program, std::uint32_t step,
                              const Visit& visit) const {
  const FlatStep& its = program.step(step);
  for (const std::uint32_t d : program.dependencies(step)) {
    visit(program.first_step(static_cast<int>(its.rank)) + d);
  }
  if (previous_[step] != none) visit(previous_[step]);
  if (room_[step] != none) visit(room_[step]);
  if (its.kind == StepKind::recv) visit(its.partner);
}

void BufferedOrder::find_channels(const Program& program, int slots) {
  previous_.assign(program.step_count(), none);
  room_.assign(program.step_count(), none);
  std::map<std::tuple<std::uint32_t, std::uint8_t, StepKind>, std::vector<std::uint32_t>> channels;
  for (int r = 0; r < program.size(); ++r) {
    channels.clear();
    for (std::uint32_t s = program.first_step(r); s < program.first_step(r + 1); ++s) {
      const FlatStep& step = program.step(s);
      if (!step.message()) continue;
      auto& channel = channels[{program.step(step.partner).rank, step.lane, step.kind}];
      if (!channel.empty()) previous_[s] = channel.back();
      const auto before = static_cast<std::size_t>(slots);
      if (step.kind == StepKind::send && channel.size() >= before) {
        room_[s] = program.step(channel[channel.size() - before]).partner;
      }
      channel.push_back(s);
    }
  }
}

bool BufferedOrder::sort(const Program& program, int slots, Findings& findings) {
  find_channels(program, slots);
  const std::uint32_t count = program.step_count();
  waits_.assign(count, 0);
  begin_.assign(count + 2, 0);
  for (std::uint32_t s = 0; s < count; ++s) {
    for_waits(program, s, [&](std::uint32_t other) {
      ++waits_[s];
      ++begin_[other + 2];
    });
  }
  for (std::uint32_t s = 0; s < count; ++s) begin_[s + 2] += begin_[s + 1];
  waiting_.resize(begin_[count + 1]);
  for (std::uint32_t s = 0; s < count; ++s) {
    for_waits(program, s, [&](std::uint32_t other) { waiting_[begin_[other + 1]++] = s; });
  }

  time_.assign(count, 0);
  sequence_.clear();
  for (std::uint32_t s = 0; s < count; ++s) {
    if (waits_[s] == 0) sequence_.push_back(s);
  }
  rounds_ = 0;
  for (std::size_t i = 0; i < sequence_.size(); ++i) {
    const std::uint32_t s = sequence_[i];
    if (program.step(s).kind == StepKind::recv) ++time_[s];
    rounds_ = std::max<std::int64_t>(rounds_, time_[s]);
    for (std::uint32_t k = begin_[s]; k < begin_[s + 1]; ++k) {
      const std::uint32_t next = waiting_[k];
      // A freed slot lets a message go, but is no message itself.
      time_[next] = std::max(time_[next], time_[s]);
      if (--waits_[next] == 0) sequence_.push_back(next);
    }
  }
  if (sequence_.size() == count) return true;
  report_circle(program, findings);
  return false;
}

/// A step that cannot run waits for another one that cannot, so this path ends in a circle.
void BufferedOrder::report_circle(const Program& program, Findings& findings) {
  const auto stuck = std::ranges::find_if(waits_, [](std::uint32_t left) { return left > 0; });
  std::vector<std::uint32_t> path;
  std::vector<bool> met(waits_.size(), false);
  auto s = static_cast<std::uint32_t>(stuck - waits_.begin());
  while (!met[s]) {
    met[s] = true;
    path.push_back(s);
    std::uint32_t next = none;
    for_waits(program, s, [&](std::uint32_t other) {
      if (waits_[other] > 0) next = other;
    });
    s = next;
  }
  path.erase(path.begin(), std::ranges::find(path, s));
  std::rotate(path.begin(), std::ranges::min_element(path), path.end());
  s = path[0];
  findings.add(Flaw::deadlock, static_cast<int>(program.step(s).rank), program.step_in_rank(s),
               [&] { return describe_circle(program, path); });
}

}  // namespace baton::proving
