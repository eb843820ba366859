#include "levels.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "baton/error.hpp"

namespace baton::scheduling {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

}  // namespace

void Levels::add(const Schedule& schedule) {
  const std::uint32_t first = matching_.count();
  const int rank = matching_.ranks();
  if (rank == 0) size_ = schedule.size();
  if (schedule.rank() != rank || schedule.size() != size_) {
    refuse(fmt::format("expected the schedule of rank {} of {}, found that of rank {} of {}", rank,
                       size_, schedule.rank(), schedule.size()));
  }
  for (std::size_t i = 0; i < schedule.steps().size(); ++i) {
    for (const std::uint32_t d : schedule.dependencies(i)) waits_.push_back(first + d);
    wait_end_.push_back(static_cast<std::uint32_t>(waits_.size()));
    receives_.push_back(schedule.steps()[i].kind == StepKind::recv);
  }
  matching_.add(schedule);
}

void Levels::count(int window) {
  if (matching_.ranks() != size_) {
    refuse(fmt::format("expected the schedules of {} ranks, found {}", size_, matching_.ranks()));
  }
  if (const auto wrong = matching_.match()) refuse(*wrong);
  chain(window);
  levels_.assign(matching_.count(), unknown);
  for (std::uint32_t s = 0; s < matching_.count(); ++s) visit(s);
  for (std::uint32_t s = 0; s < matching_.count(); ++s) {
    if (receives_[s]) levels_[s] = levels_[matching_.partner(s)];
  }
}

void Levels::chain(int window) {
  previous_.assign(matching_.count(), none);
  if (window == 0) return;
  for (int r = 0; r < matching_.ranks(); ++r) {
    const Channels& channels = matching_.channels(r);
    for (const Channel& channel : channels.list) {
      if (!channel.sends) continue;
      for (std::uint32_t k = channel.first + static_cast<std::uint32_t>(window); k < channel.last;
           ++k) {
        previous_[matching_.first(r) + channels.messages[k]] =
            matching_.first(r) + channels.messages[k - static_cast<std::uint32_t>(window)];
      }
    }
  }
}

/// Finds the level of a step, and of all that it waits for.
void Levels::visit(std::uint32_t step) {
  const auto enter = [&](std::uint32_t node) {
    levels_[node] = entered;
    stack_.push_back({node, node, 0, 0});
  };
  if (levels_[node_of(step)] == unknown) enter(node_of(step));
  while (!stack_.empty()) {
    Frame& frame = stack_.back();
    const std::uint32_t begin = wait_end_[frame.side];
    const std::uint32_t waits = wait_end_[frame.side + 1] - begin;
    std::uint32_t wait = none;
    if (frame.next < waits) {
      wait = node_of(waits_[begin + frame.next]);
    } else if (frame.next == waits) {
      wait = previous_[frame.side];
    } else if (frame.side == frame.node && matching_.partner(frame.node) != none) {
      frame.side = matching_.partner(frame.node);
      frame.next = 0;
      continue;
    } else {
      const std::int32_t level = frame.level + (matching_.partner(frame.node) != none ? 1 : 0);
      levels_[frame.node] = known + level;
      stack_.pop_back();
      if (!stack_.empty()) stack_.back().level = std::max(stack_.back().level, level);
      continue;
    }
    ++frame.next;
    if (wait == none) continue;
    if (levels_[wait] == unknown) {
      enter(wait);
    } else if (levels_[wait] == entered) {
      refuse(fmt::format("expected steps that can take place, found {}, which waits for itself",
                         phrase(wait)));
    } else {
      frame.level = std::max(frame.level, levels_[wait] - known);
    }
  }
}

std::string Levels::phrase(std::uint32_t step) const {
  int rank = 0;
  while (matching_.first(rank + 1) <= step) ++rank;
  return fmt::format("step {} of rank {}", step - matching_.first(rank), rank);
}

}  // namespace baton::scheduling
