#include "segmented_ranks.hpp"

#include <algorithm>

#include "baton/schedule/passes.hpp"

namespace baton {
namespace {

/// Kinds of schedules that are kept: algorithms whose ranks are alike have few.
constexpr std::size_t most_cuts = 16;

bool alike(const Schedule& a, const Schedule& b) {
  const auto alike_steps = [](const Step& x, Step y) {
    y.peer = x.peer;
    return x == y;
  };
  Schedule::Header header = b.header();
  header.rank = a.rank();
  return a.header() == header && std::ranges::equal(a.steps(), b.steps(), alike_steps) &&
         std::ranges::equal(a.regions(), b.regions()) && a.dependencies() == b.dependencies();
}

/// The same with other peers: those that `peer_of` says of each message, by number.
template <class PeerOf>
Schedule with_peers(const Schedule& schedule, int rank, const PeerOf& peer_of) {
  Schedule::Header header = schedule.header();
  header.rank = rank;
  std::vector<Step> steps(schedule.steps().begin(), schedule.steps().end());
  std::int32_t message = 0;
  for (Step& step : steps)
    if (step.message()) step.peer = peer_of(step, message++);
  return Schedule(std::move(header), std::move(steps),
                  {schedule.regions().begin(), schedule.regions().end()}, schedule.dependencies());
}

}  // namespace

Schedule SegmentedRanks::of(const Schedule& schedule) {
  std::vector<std::int32_t> peers;
  for (const Step& step : schedule.steps())
    if (step.message()) peers.push_back(step.peer);
  // Numbers of messages must be ranks: those below the last, which poses as the schedule's own.
  if (segment_ <= 0 || static_cast<int>(peers.size()) >= schedule.size())
    return segmented(schedule, segment_);
  const auto cut = cut_of(schedule);
  if (!cut) return segmented(schedule, segment_);
  return with_peers(cut->pieces, schedule.rank(), [&](const Step& piece, std::int32_t) {
    return peers[static_cast<std::size_t>(piece.peer)];
  });
}

std::shared_ptr<const SegmentedRanks::Cut> SegmentedRanks::cut_of(const Schedule& schedule) {
  const std::lock_guard lock(mutex_);
  for (const auto& cut : cuts_)
    if (alike(cut->schedule, schedule)) return cut;
  if (cuts_.size() == most_cuts) return nullptr;
  const Schedule numbered = with_peers(schedule, schedule.size() - 1,
                                       [](const Step&, std::int32_t message) { return message; });
  cuts_.push_back(std::make_shared<const Cut>(Cut{schedule, segmented(numbered, segment_)}));
  return cuts_.back();
}

}  // namespace baton
