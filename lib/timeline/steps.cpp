#include "steps.hpp"

#include <algorithm>

namespace baton::timing {

Steps::Steps(std::span<const Schedule> schedules) : schedules_(schedules) {
  for (std::size_t r = 0; r < schedules.size(); ++r) {
    rank_.insert(rank_.end(), schedules[r].steps().size(), static_cast<std::int32_t>(r));
    matching_.add(schedules[r]);
  }
  matching_.match();  // a timeline may lack messages
}

std::vector<std::uint32_t> Steps::order() const {
  std::vector<std::uint32_t> waits(count(), 0), begin(std::size_t{count()} + 1, 0);
  const auto for_each_wait = [&](const auto& visit) {  // (step that waits, step that it waits for)
    for (std::uint32_t s = 0; s < count(); ++s) {
      for (const std::uint32_t d : schedule(s).dependencies(index(s))) visit(s, at(rank(s), d));
      if (step(s).kind == StepKind::recv && partner(s) != none) visit(s, partner(s));
    }
  };
  for_each_wait([&](std::uint32_t s, std::uint32_t d) {
    ++waits[s];
    ++begin[d + 1];
  });
  for (std::uint32_t s = 0; s < count(); ++s) begin[s + 1] += begin[s];
  std::vector<std::uint32_t> waiting(begin.back()), next(begin.begin(), begin.end() - 1);
  for_each_wait([&](std::uint32_t s, std::uint32_t d) { waiting[next[d]++] = s; });

  std::vector<std::uint32_t> order;
  order.reserve(count());
  for (std::uint32_t s = 0; s < count(); ++s) {
    const bool lonely = step(s).kind == StepKind::recv && partner(s) == none;
    if (waits[s] == 0 && !lonely) order.push_back(s);
    if (lonely) waits[s] = none;  // never ready
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::uint32_t k = begin[order[i]]; k < begin[order[i] + 1]; ++k) {
      if (--waits[waiting[k]] == 0) order.push_back(waiting[k]);
    }
  }
  return order;
}

OwnRanks::OwnRanks(const Timeline& timeline) : timeline_(timeline) {
  for (const TimedOperation& operation : timeline.operations) {
    auto& own = own_.emplace_back(static_cast<std::size_t>(std::max(timeline.ranks, 0)), -1);
    std::size_t ranks = operation.schedules ? operation.schedules->size() : 0;
    if (!operation.ranks.empty()) ranks = std::min(ranks, operation.ranks.size());
    for (std::size_t i = 0; i < ranks; ++i) {
      const auto rank = static_cast<std::size_t>(operation.rank_of(static_cast<int>(i)));
      if (rank < own.size()) own[rank] = static_cast<int>(i);
    }
  }
}

int OwnRanks::of(const Event& event) const {
  const auto rank = static_cast<std::size_t>(event.rank);
  if (event.operation >= own_.size() || rank >= own_[event.operation].size()) return -1;
  const int own = own_[event.operation][rank];
  if (own < 0) return -1;
  const auto& schedules = *timeline_.operations[event.operation].schedules;
  return event.step < schedules[static_cast<std::size_t>(own)].steps().size() ? own : -1;
}

}  // namespace baton::timing
