#include "shapes.hpp"

#include <algorithm>
#include <span>
#include <tuple>

#include "baton/schedule/passes.hpp"

namespace baton::simulating {
namespace {

/// In all keys together: most algorithms have few kinds of ranks.
constexpr std::size_t most_words = 1 << 23;

std::size_t mixed(std::size_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

std::size_t hash_of(const Shape& shape) {
  std::size_t hash = shape.steps.size();
  for (const Shape::Step& step : shape.steps) {
    hash = mixed(hash, static_cast<std::uint64_t>(step.bytes));
    hash = mixed(hash, static_cast<std::uint64_t>(step.first_dependent) << 32 | step.channel);
    hash = mixed(hash, static_cast<std::uint64_t>(step.kind));
  }
  for (const std::uint32_t dependent : shape.dependents) hash = mixed(hash, dependent);
  return hash;
}

/// The messages' peers, in the order of first messages.
class Peers {
 public:
  std::uint32_t number(std::int32_t rank) {
    const auto [found, added] =
        numbers_.try_emplace(rank, static_cast<std::uint32_t>(list_.size()));
    if (added) list_.push_back(rank);
    return found->second;
  }
  std::span<const std::int32_t> list() const { return list_; }

 private:
  std::vector<std::int32_t> list_;
  std::unordered_map<std::int32_t, std::uint32_t> numbers_;
};

void append(Key& key, std::span<const Region> operand) {
  key.push_back(static_cast<std::int64_t>(operand.size()));
  for (const Region& r : operand) {
    key.insert(key.end(),
               {static_cast<std::int64_t>(r.buffer), r.offset, r.block, r.count, r.stride});
  }
}

bool before(std::span<const Region> a, std::span<const Region> b) {
  return std::ranges::lexicographical_compare(a, b, [](const Region& x, const Region& y) {
    return std::tie(x.buffer, x.offset, x.block, x.count, x.stride) <
           std::tie(y.buffer, y.offset, y.block, y.count, y.stride);
  });
}

/// Everything that decides the shape. The left operand of a fold and the identity of peers do not.
Key key_of(const Schedule& schedule, Peers& peers, bool dependencies) {
  Key key;
  key.reserve(schedule.steps().size() * 4 + schedule.regions().size() * 5);
  const Schedule::Header& header = schedule.header();
  key.insert(key.end(), {header.scratch, header.slots, header.in_place});
  const auto steps = schedule.steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    key.push_back(static_cast<std::int64_t>(step.kind) << 8 | step.lane);
    if (step.message()) key.push_back(peers.number(step.peer));
    if (step.kind == StepKind::compute) {
      const Computation& computation = schedule.computation(step);
      key.push_back(2 * computation.ns + (computation.advances ? 1 : 0));
    }
    const bool swap =
        step.kind == StepKind::fold && before(schedule.operand(step, 2), schedule.operand(step, 1));
    append(key, schedule.operand(step, 0));
    for (int k = 1; k < operands(step.kind); ++k)
      append(key, schedule.operand(step, swap ? 3 - k : k));
    if (!dependencies) continue;
    const auto list = schedule.dependencies(i);
    key.push_back(static_cast<std::int64_t>(list.size()));
    key.insert(key.end(), list.begin(), list.end());
  }
  return key;
}

}  // namespace

std::size_t KeyHash::operator()(const Key& key) const {
  std::size_t hash = key.size();
  for (const std::int64_t word : key) hash = mixed(hash, static_cast<std::uint64_t>(word));
  return hash;
}

FlatRank Shapes::of(const Schedule& schedule) {
  Peers peers;
  Key key = key_of(schedule, peers, segment_ <= 0);
  {
    const std::lock_guard lock(mutex_);
    const auto found = kinds_.find(key);
    if (found != kinds_.end()) {
      FlatRank rank{found->second.shape, {}};
      for (const std::uint32_t number : found->second.peers)
        rank.peers.push_back(peers.list()[number]);
      return rank;
    }
  }
  FlatRank rank = cut(schedule);
  const std::lock_guard lock(mutex_);
  rank.shape = unique(std::move(rank.shape));
  if (kinds_words_ + key.size() <= most_words) {
    kinds_words_ += key.size();
    Kind kind{rank.shape, {}};
    for (const std::int32_t peer : rank.peers) kind.peers.push_back(peers.number(peer));
    kinds_.try_emplace(std::move(key), std::move(kind));
  }
  return rank;
}

FlatRank Shapes::cut(const Schedule& schedule) const {
  return flattened(packed(segmented(schedule, segment_)), element_bytes_, calls_);
}

std::shared_ptr<const Shape> Shapes::unique(std::shared_ptr<const Shape> shape) {
  const std::size_t hash = hash_of(*shape);
  const auto [first, last] = shapes_.equal_range(hash);
  for (auto kept = first; kept != last; ++kept)
    if (*kept->second == *shape) return kept->second;
  return shapes_.emplace(hash, std::move(shape))->second;
}

}  // namespace baton::simulating
