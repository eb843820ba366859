#include "order.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "findings.hpp"

// A depth-first search over the waits of each step. A message is one node, named by its send. It is
// complete when both sides are posted, so it waits for the waits of both. The one-port order
// contains the windows' order. So a one-port order without a cycle answers both questions;
// otherwise the windows are searched alone.

namespace baton::proving {

bool Order::sort(const Program& program, Findings& findings) {
  chain_ports(program);
  if (visit_all(program)) {
    rounds_ = 0;
    for (const std::uint32_t s : sequence_) {
      if (program.step(s).message()) rounds_ = std::max<std::int64_t>(rounds_, finish_[s] - 1);
    }
    measure_depth(program);
    return true;
  }
  rounds_ = depth_ = -1;
  chain_windows(program);
  if (visit_all(program)) return true;
  const std::uint32_t s = cycle_[0];
  findings.add(Flaw::deadlock, static_cast<int>(program.step(s).rank), program.step_in_rank(s),
               [&] { return describe_circle(program, cycle_); });
  return false;
}

/// The longest path by dependencies and messages alone.
void Order::measure_depth(const Program& program) {
  depth_ = 0;
  for (const std::uint32_t s : sequence_) {
    const FlatStep& step = program.step(s);
    std::int32_t depth = 0;
    const auto wait_for = [&](std::uint32_t side) {
      for (const std::uint32_t d : program.dependencies(side)) {
        const std::uint32_t wait =
            program.first_step(static_cast<int>(program.step(side).rank)) + d;
        const bool recv = program.step(wait).kind == StepKind::recv;
        depth = std::max(depth, finish_[recv ? program.step(wait).partner : wait]);
      }
    };
    wait_for(s);
    if (step.message()) wait_for(step.partner);
    finish_[s] = depth + (step.message() ? 1 : 0);
    depth_ = std::max<std::int64_t>(depth_, finish_[s]);
  }
}

void Order::chain_ports(const Program& program) {
  previous_.assign(program.step_count(), none);
  for (int r = 0; r < program.size(); ++r) {
    std::uint32_t last_send = none, last_recv = none;
    for (std::uint32_t s = program.first_step(r); s < program.first_step(r + 1); ++s) {
      const StepKind kind = program.step(s).kind;
      if (kind == StepKind::send) {
        previous_[s] = std::exchange(last_send, s);
      } else if (kind == StepKind::recv) {
        previous_[s] = std::exchange(last_recv, s);
      }
    }
  }
}

void Order::chain_windows(const Program& program) {
  previous_.assign(program.step_count(), none);
  constexpr std::size_t channels = 512;  // per peer: 256 lanes, two directions
  std::vector<std::uint32_t> last(static_cast<std::size_t>(program.size()) * channels, none);
  const auto last_of = [&](const FlatStep& step) -> std::uint32_t& {
    return last[std::size_t{program.step(step.partner).rank} * channels +
                step.lane * std::size_t{2} + (step.kind == StepKind::send ? 1 : 0)];
  };
  for (int r = 0; r < program.size(); ++r) {
    for (std::uint32_t s = program.first_step(r); s < program.first_step(r + 1); ++s) {
      const FlatStep& step = program.step(s);
      if (step.message()) previous_[s] = std::exchange(last_of(step), s);
    }
    for (std::uint32_t s = program.first_step(r); s < program.first_step(r + 1); ++s) {
      const FlatStep& step = program.step(s);
      if (step.message()) last_of(step) = none;
    }
  }
}

bool Order::visit_all(const Program& program) {
  sequence_.clear();
  finish_.assign(program.step_count(), 0);
  for (std::uint32_t s = 0; s < program.step_count(); ++s) {
    if (!visit(program, s)) return false;
  }
  return true;
}

/// Appends `step` and everything that it waits for to the sequence. Returns false and sets cycle_
/// if it waits for itself.
bool Order::visit(const Program& program, std::uint32_t step) {
  const auto node_of = [&](std::uint32_t s) {
    return program.step(s).kind == StepKind::recv ? program.step(s).partner : s;
  };
  const auto push = [&](std::uint32_t s) {
    finish_[node_of(s)] = -1;
    stack_.push_back({s, node_of(s), 0, 0});
  };
  stack_.clear();
  if (finish_[node_of(step)] == 0) push(step);
  while (!stack_.empty()) {
    Frame& frame = stack_.back();
    const auto waits = program.dependencies(frame.side);
    std::uint32_t wait = none;
    if (frame.next < waits.size()) {
      wait =
          program.first_step(static_cast<int>(program.step(frame.side).rank)) + waits[frame.next];
    } else if (frame.next == waits.size()) {
      wait = previous_[frame.side];
    } else if (program.step(frame.side).kind == StepKind::send) {
      frame.side = program.step(frame.side).partner;
      frame.next = 0;
      continue;
    } else {
      const std::uint32_t node = node_of(frame.entered);
      const std::int32_t time = frame.time + (program.step(node).message() ? 1 : 0);
      finish_[node] = time + 1;
      sequence_.push_back(node);
      stack_.pop_back();
      if (!stack_.empty()) stack_.back().time = std::max(stack_.back().time, time);
      continue;
    }
    ++frame.next;
    if (wait == none) continue;
    const std::int32_t finish = finish_[node_of(wait)];
    if (finish > 0) {
      frame.time = std::max(frame.time, finish - 1);
    } else if (finish == 0) {
      push(wait);
    } else {
      cycle_.clear();
      auto start = std::find_if(stack_.begin(), stack_.end(), [&](const Frame& f) {
        return node_of(f.entered) == node_of(wait);
      });
      start->entered = wait;
      for (; start != stack_.end(); ++start) {
        cycle_.push_back(start->entered);
        if (start->side != start->entered) cycle_.push_back(start->side);
      }
      return false;
    }
  }
  return true;
}

std::string describe_circle(const Program& program, std::span<const std::uint32_t> steps) {
  constexpr std::size_t most = 12;
  std::string text = program.phrase(steps[0]) + " waits for ";
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (i == most && steps.size() > most + 2) {
      text += fmt::format("… {} more, the last of which waits for ", steps.size() - most);
      break;
    }
    text += program.phrase(steps[i]) + ", which waits for ";
  }
  return text + "the first";
}

}  // namespace baton::proving
