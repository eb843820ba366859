#include "collectives.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "baton/error.hpp"

namespace baton::transformer {
namespace {

/// ns for each byte of a long message.
double each_byte(const TimeTable& table) {
  constexpr std::int64_t long_message = 1 << 20;
  return static_cast<double>(table.of(2 * long_message) - table.of(long_message)) / long_message;
}

}  // namespace

CollectiveChoice::CollectiveChoice(const Network& network, std::size_t element_bytes,
                                   ChoiceRule rule, std::map<Collective, std::string> names)
    : registry_(std::make_shared<const Registry>(Registry::builtin())),
      within_(level_of(network.within)),
      across_(level_of(network.across)),
      ranks_per_host_(network.ranks_per_host),
      fold_per_byte_(each_byte(network.fold)),
      element_bytes_(element_bytes),
      rule_(rule),
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

Problem CollectiveChoice::problem_of(const StepCollective& call, const StepGroup& group) const {
  Problem problem;
  problem.collective = call.collective;
  problem.size = static_cast<int>(group.ranks.size());
  problem.rank = group.own;
  problem.count = call.count;
  if (call.uneven) {
    std::vector<std::int64_t> counts;
    for (int r = 0; r < problem.size; ++r)
      counts.push_back(shard_of(call.count, problem.size, r).size());
    problem.count = counts[static_cast<std::size_t>(group.own)];
    const bool even = std::ranges::count(counts, problem.count) == problem.size;
    const bool gathers = call.collective == Collective::all_gather;
    if (!even) (gathers ? problem.output_blocks : problem.input_blocks) = Blocks::packed(counts);
  }
  if (ranks_per_host_ > 0) {
    std::vector<int> hosts;
    for (const int rank : group.ranks) hosts.push_back(rank / ranks_per_host_);
    problem.hosts = host_grouping(hosts);
  }
  return problem;
}

double CollectiveChoice::time(const Algorithm& algorithm, const Problem& problem,
                              const Level& level) const {
  const Cost cost = algorithm.cost(problem);
  const std::int64_t path = cost.path > 0 ? cost.path : std::max(cost.sent, cost.received);
  const auto bytes = static_cast<double>(element_bytes_);
  return static_cast<double>(cost.rounds) * level.start +
         static_cast<double>(path) * bytes * level.byte +
         static_cast<double>(cost.folded) * bytes * fold_per_byte_;
}

const Algorithm& CollectiveChoice::fastest(const Problem& problem, const Level& level) const {
  const Algorithm* best = nullptr;
  double least = 0;
  for (const Algorithm* algorithm : registry_->of(problem.collective)) {
    if (algorithm->hierarchical || algorithm->pipelined || !refusal(*algorithm, problem).empty())
      continue;
    const double its = time(*algorithm, problem, level);
    if (best == nullptr || its < least) best = algorithm, least = its;
  }
  if (!best) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected an algorithm for {} ranks, found none",
                            name(problem.collective), problem.size));
  }
  return *best;
}

double CollectiveChoice::time(const StepCollective& call, const StepGroup& group) const {
  const Problem problem = problem_of(call, group).at(0);
  const Level level = level_of(group);
  return time(fastest(problem, level), problem, level);
}

Choice CollectiveChoice::of(const StepCollective& call, const StepGroup& group) const {
  const Problem problem = problem_of(call, group).at(0);  // the same on all ranks
  if (const auto named = names_.find(call.collective); named != names_.end())
    return {named->second, 0};
  if (rule_ == ChoiceRule::library) return chosen(*registry_, problem, element_bytes_);
  return {fastest(problem, level_of(group)).name, 0};
}

Schedule CollectiveChoice::schedule(const StepCollective& call, const StepGroup& group,
                                    const Choice& choice) const {
  return scheduled(*registry_, problem_of(call, group), element_bytes_, choice);
}

const Parts::Part& Parts::of(const StepCollective& call) {
  if (const auto found = parts_.find(call); found != parts_.end()) return found->second;
  StepGroup group = group_of(layout_, rank_, call.along);
  const Choice choice = choice_.of(call, group);
  Schedule schedule = choice_.schedule(call, group, choice);
  return parts_.emplace(call, Part{std::move(schedule), std::move(group), choice}).first->second;
}

}  // namespace baton::transformer
