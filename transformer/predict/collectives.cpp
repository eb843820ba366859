#include "collectives.hpp"

#include <algorithm>
#include <iterator>

namespace baton::transformer {
namespace {

/// ns for each byte of a long message.
double each_byte(const TimeTable& table) {
  constexpr std::int64_t long_message = 1 << 20;
  return static_cast<double>(table.of(2 * long_message) - table.of(long_message)) / long_message;
}

Problem problem_of(Collective collective, int size, int rank, std::int64_t count) {
  Problem problem;
  problem.collective = collective;
  problem.size = size;
  problem.rank = rank;
  problem.count = count;
  return problem;
}

}  // namespace

CollectiveChoice::CollectiveChoice(const Network& network, std::size_t element_bytes,
                                   std::map<Collective, std::string> names)
    : registry_(std::make_shared<const Registry>(Registry::builtin())),
      within_(level_of(network.within)),
      across_(level_of(network.across)),
      ranks_per_host_(network.ranks_per_host),
      fold_per_byte_(each_byte(network.fold)),
      element_bytes_(static_cast<double>(element_bytes)),
      names_(std::move(names)) {}

CollectiveChoice::Level CollectiveChoice::level_of(const NetworkLevel& level) {
  return {static_cast<double>(level.latency + level.post + level.send.of(0) + level.receive.of(0) +
                              level.wire.of(0)),
          std::max({each_byte(level.wire), each_byte(level.send), each_byte(level.receive)})};
}

CollectiveChoice::Level CollectiveChoice::level_of(const StepGroup& group) const {
  if (ranks_per_host_ == 0) return within_;
  const int first = group.ranks.front() / ranks_per_host_;
  const auto here =
      std::ranges::count_if(group.ranks, [&](int rank) { return rank / ranks_per_host_ == first; });
  if (here == std::ssize(group.ranks)) return within_;
  Level level = across_;
  level.byte *= std::max(1.0, static_cast<double>(ranks_per_host_) / static_cast<double>(here));
  return level;
}

double CollectiveChoice::time(const Algorithm& algorithm, const Problem& problem,
                              const Level& level) const {
  const Cost cost = algorithm.cost(problem);
  const std::int64_t path = cost.path > 0 ? cost.path : std::max(cost.sent, cost.received);
  return static_cast<double>(cost.rounds) * level.start +
         static_cast<double>(path) * element_bytes_ * level.byte +
         static_cast<double>(cost.folded) * element_bytes_ * fold_per_byte_;
}

double CollectiveChoice::time(Collective collective, const StepGroup& group,
                              std::int64_t count) const {
  const auto size = static_cast<int>(group.ranks.size());
  return time(of(collective, group, count), problem_of(collective, size, 0, count),
              level_of(group));
}

const Algorithm& CollectiveChoice::of(Collective collective, const StepGroup& group,
                                      std::int64_t count) const {
  if (const auto named = names_.find(collective); named != names_.end())
    return registry_->find(collective, named->second);
  const Problem problem = problem_of(collective, static_cast<int>(group.ranks.size()), 0, count);
  const Level level = level_of(group);
  const Algorithm* best = nullptr;
  double least = 0;
  for (const Algorithm* algorithm : registry_->of(collective)) {
    if (algorithm->hierarchical || algorithm->pipelined || !refusal(*algorithm, problem).empty())
      continue;
    const double its = time(*algorithm, problem, level);
    if (best == nullptr || its < least) best = algorithm, least = its;
  }
  return *best;
}

const Parts::Part& Parts::of(Collective collective, Along along, std::int64_t count) {
  const auto key = std::tuple(collective, along, count);
  if (const auto found = parts_.find(key); found != parts_.end()) return found->second;
  StepGroup group = group_of(layout_, rank_, along);
  const auto size = static_cast<int>(group.ranks.size());
  const Algorithm& algorithm = choice_.of(collective, group, count);
  Part part{algorithm.generate(problem_of(collective, size, group.own, count)), std::move(group)};
  return parts_.emplace(key, std::move(part)).first->second;
}

}  // namespace baton::transformer
