#include "levels.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "baton/error.hpp"

namespace baton {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

}  // namespace

void Levels::add(const Schedule& schedule) {
  const std::uint32_t first = first_.back();
  const auto rank = static_cast<std::uint32_t>(first_.size() - 1);
  if (rank == 0) size_ = schedule.size();
  if (schedule.rank() != static_cast<int>(rank) || schedule.size() != size_) {
    refuse(fmt::format("expected the schedule of rank {} of {}, found that of rank {} of {}", rank,
                       size_, schedule.rank(), schedule.size()));
  }
  for (std::size_t i = 0; i < schedule.steps().size(); ++i) {
    const Step& step = schedule.steps()[i];
    for (const std::uint32_t d : schedule.dependencies(i)) waits_.push_back(first + d);
    wait_end_.push_back(static_cast<std::uint32_t>(waits_.size()));
    receives_.push_back(step.kind == StepKind::recv);
    if (!step.message()) continue;
    const auto peer = static_cast<std::uint32_t>(step.peer);
    const std::uint32_t number = first + static_cast<std::uint32_t>(i);
    if (step.kind == StepKind::send) {
      sends_.push_back({rank, peer, step.lane, number});
    } else {
      recvs_.push_back({peer, rank, step.lane, number});
    }
  }
  first_.push_back(first + static_cast<std::uint32_t>(schedule.steps().size()));
}

void Levels::count(int window) {
  if (first_.size() != static_cast<std::size_t>(size_) + 1) {
    refuse(fmt::format("expected the schedules of {} ranks, found {}", size_, first_.size() - 1));
  }
  match(window);
  levels_.assign(first_.back(), unknown);
  for (std::uint32_t s = 0; s < first_.back(); ++s) visit(s);
  for (const End& recv : recvs_) levels_[recv.step] = levels_[partner_[recv.step]];
}

/// The k-th send of a stream is the k-th receive.
void Levels::match(int window) {
  const auto by_stream = [](const End& a, const End& b) { return a.stream() < b.stream(); };
  std::ranges::stable_sort(sends_, by_stream);
  std::ranges::stable_sort(recvs_, by_stream);
  partner_.assign(first_.back(), none);
  previous_.assign(first_.back(), none);
  for (std::size_t i = 0; i < std::max(sends_.size(), recvs_.size()); ++i) {
    const bool send_first =
        i >= recvs_.size() || (i < sends_.size() && by_stream(sends_[i], recvs_[i]));
    if (send_first)
      refuse(
          fmt::format("expected a recv for every send, found none for {}", phrase(sends_[i].step)));
    if (i >= sends_.size() || by_stream(recvs_[i], sends_[i])) {
      refuse(
          fmt::format("expected a send for every recv, found none for {}", phrase(recvs_[i].step)));
    }
    const std::uint32_t send = sends_[i].step;
    partner_[send] = recvs_[i].step;
    partner_[recvs_[i].step] = send;
    const auto back = static_cast<std::size_t>(window);
    if (window > 0 && i >= back && sends_[i - back].stream() == sends_[i].stream()) {
      previous_[send] = sends_[i - back].step;
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
    } else if (frame.side == frame.node && partner_[frame.node] != none) {
      frame.side = partner_[frame.node];
      frame.next = 0;
      continue;
    } else {
      const std::int32_t level = frame.level + (partner_[frame.node] != none ? 1 : 0);
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
  const auto after = std::ranges::upper_bound(first_, step);
  return fmt::format("step {} of rank {}", step - *(after - 1), after - first_.begin() - 1);
}

}  // namespace baton
