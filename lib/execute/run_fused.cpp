#include "run_fused.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "../base/raise.hpp"

namespace baton::execute {
namespace {

std::string ranks_in_words(const std::set<int>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", *ranks.begin());
  const auto last = std::prev(ranks.end());
  return fmt::format("ranks {} and {}", fmt::join(ranks.begin(), last, ", "), *last);
}

}  // namespace

std::vector<FusedGroup> fused_groups_of(const Plan& plan) {
  std::vector<FusedGroup> groups;
  const auto items = plan.items();
  for (std::uint32_t i = 0; i < items.size();) {
    if (items[i].local()) {
      ++i;
      continue;
    }
    const std::uint32_t first = i;
    while (i < items.size() && !items[i].local() && plan.round(i) == plan.round(first)) ++i;
    if (!groups.empty() && plan.round(groups.back().first) >= plan.round(first))
      base::refuse(
          "expected the messages of round {} in one fused group after those of round {}, found "
          "step {} apart from them",
          plan.round(first), plan.round(groups.back().first), first);
    groups.push_back({first, i});
  }
  return groups;
}

std::string in_words(const Plan& plan, const FusedGroup& group) {
  std::set<int> to, from;
  for (std::uint32_t i = group.first; i < group.last; ++i)
    (plan.items()[i].kind == StepKind::send ? to : from).insert(plan.items()[i].peer);
  std::string words;
  if (!to.empty()) words = "send to " + ranks_in_words(to);
  if (!from.empty())
    words += fmt::format("{}receive from {}", to.empty() ? "" : " and ", ranks_in_words(from));
  return words;
}

void FusedQueue::give(const Plan& plan, std::span<const FusedGroup> groups,
                      std::span<std::byte* const> bases, const Kernels& kernels, Stream stream,
                      std::span<const std::unique_ptr<Marker>> markers) {
  if (!markers.empty()) markers.front()->set(stream);
  std::uint32_t next = 0;
  const auto compute_up_to = [&](std::uint32_t end) {
    for (; next < end; ++next) {
      rows_.clear();
      append_rows(plan, plan.items()[next], bases, rows_);
      give_rows(device_, plan, plan.items()[next].kind, kernels, rows_, stream);
    }
  };
  for (std::size_t g = 0; g < groups.size(); ++g) {
    compute_up_to(groups[g].first);
    exchange(plan, groups[g], bases, stream);
    next = groups[g].last;
    if (!markers.empty()) markers[g + 1]->set(stream);
  }
  compute_up_to(static_cast<std::uint32_t>(plan.items().size()));
}

void FusedQueue::exchange(const Plan& plan, const FusedGroup& group,
                          std::span<std::byte* const> bases, Stream stream) {
  transport_.begin();
  for (std::uint32_t i = group.first; i < group.last; ++i) {
    const Plan::Item& item = plan.items()[i];
    const Place& place = plan.pieces_of(item)[0].at[0];
    std::byte* const data = bases[place.base] + place.offset;
    const auto bytes = static_cast<std::size_t>(item.bytes);
    if (item.kind == StepKind::send) {
      transport_.send(item.peer, data, bytes, stream);
    } else {
      transport_.recv(item.peer, data, bytes, stream);
    }
  }
  transport_.end();
}

}  // namespace baton::execute
