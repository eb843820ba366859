#include "group.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include "../../base/raise.hpp"
#include "baton/schedule/hosts.hpp"

namespace baton::threads {

Group::Group(std::vector<std::shared_ptr<Bell>> bells, const ThreadOptions& options,
             std::chrono::microseconds spin)
    : options_(options), spin_(spin) {
  const Hosts hosts(options.hosts);
  options_.hosts.assign(hosts.of().begin(), hosts.of().end());
  members_.reserve(bells.size());
  for (auto& bell : bells)
    members_.push_back(std::make_unique<Member>(std::move(bell), options.eager_bytes));
}

void Group::complete(Entry& send, Entry& recv, const Entry* self) {
  // Read before `done` is set: from then on the owner may reuse the entry.
  const int source = send.source, destination = recv.destination;
  const bool ring_source = &send != self && send.side == Side::send;
  const bool ring_destination = &recv != self;

  recv.bytes = send.bytes;
  recv.state.store(State::done, std::memory_order_release);
  if (ring_destination) bell(destination).ring();

  if (send.side == Side::buffered_send) {
    auto& buffer = reinterpret_cast<Buffer&>(send);
    buffer.pool->give(buffer);
  } else {
    send.state.store(State::done, std::memory_order_release);
  }
  if (ring_source) bell(source).ring();
}

Group::Seat Group::split(int rank, int color, int key) {
  std::unique_lock lock(split_mutex_);
  const int splits = splits_;
  Member& me = member(rank);
  me.color = color;
  me.key = key;
  me.arrived = true;
  if (++arrived_ == size()) {
    seat_everyone();
    for (auto& m : members_) m->arrived = false;
    arrived_ = 0;
    ++splits_;
    split_changed_.notify_all();
  }
  const auto missing = [](const auto& m) { return m->left && !m->arrived; };
  split_changed_.wait(lock, [&] {
    return splits_ != splits || std::any_of(members_.begin(), members_.end(), missing);
  });
  if (splits_ == splits) {
    const auto who = std::find_if(members_.begin(), members_.end(), missing) - members_.begin();
    base::raise(
        ErrorCode::transport,
        fmt::format("split needs all {} ranks, but rank {} has left the group", size(), who),
        {.rank = rank, .peer = static_cast<int>(who)});
  }
  return std::exchange(me.seat, {});
}

void Group::seat_everyone() {
  std::map<int, std::vector<int>> ranks_of;  // by color
  for (int rank = 0; rank < size(); ++rank)
    if (member(rank).color >= 0) ranks_of[member(rank).color].push_back(rank);
  for (auto& [color, members] : ranks_of) {
    std::vector<int>& ranks = members;  // lambdas cannot capture structured bindings
    std::stable_sort(ranks.begin(), ranks.end(),
                     [&](int a, int b) { return member(a).key < member(b).key; });
    const auto group = group_of(ranks, static_cast<std::uint64_t>(color) + 1);
    for (std::size_t i = 0; i < ranks.size(); ++i)
      member(ranks[i]).seat = {group, static_cast<int>(i)};
  }
}

std::shared_ptr<Group> Group::group_of(const std::vector<int>& ranks, std::uint64_t seed) const {
  std::vector<std::shared_ptr<Bell>> bells;
  for (int rank : ranks) bells.push_back(members_[static_cast<std::size_t>(rank)]->bell);
  ThreadOptions options = options_;
  if (options.seed != 0) options.seed += seed;
  const auto keep_those_of_ranks = [&](auto& list) {
    if (list.size() != members_.size()) return;  // one device each, or none
    auto of_ranks = std::remove_reference_t<decltype(list)>();
    for (int rank : ranks) of_ranks.push_back(list[static_cast<std::size_t>(rank)]);
    list = std::move(of_ranks);
  };
  keep_those_of_ranks(options.hosts);
  keep_those_of_ranks(options.devices);
  return std::make_shared<Group>(std::move(bells), options, spin_);
}

Group::Seat Group::subgroup(int rank, const std::vector<int>& ranks, int number) {
  const std::lock_guard lock(split_mutex_);
  const std::pair key(ranks, number);
  Subgroup& made = subgroups_[key];
  if (!made.group) made.group = group_of(ranks, static_cast<std::uint64_t>(number) << 32);
  Seat seat{made.group, static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin())};
  if (++made.seated == ranks.size()) subgroups_.erase(key);
  return seat;
}

void Group::leave(int rank) {
  std::lock_guard lock(split_mutex_);
  member(rank).left = true;
  split_changed_.notify_all();
}

}  // namespace baton::threads
