#include "collectives.hpp"

#include <algorithm>

namespace baton::transformer {
namespace {

constexpr std::int64_t long_message = 1 << 20;

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
      level_(network.ranks_per_host == 0 ? network.within : network.across),
      element_bytes_(static_cast<double>(element_bytes)),
      names_(std::move(names)) {
  const auto each = [](const TimeTable& table) {
    return static_cast<double>(table.of(2 * long_message) - table.of(long_message)) / long_message;
  };
  byte_ns_ = std::max({each(level_.wire), each(level_.send), each(level_.receive)});
  fold_per_byte_ = each(network.fold);
}

double CollectiveChoice::time(const Algorithm& algorithm, const Problem& problem) const {
  const Cost cost = algorithm.cost(problem);
  const auto start = static_cast<double>(level_.latency + level_.post + level_.send.of(0) +
                                         level_.receive.of(0) + level_.wire.of(0));
  const std::int64_t path = cost.path > 0 ? cost.path : std::max(cost.sent, cost.received);
  return static_cast<double>(cost.rounds) * start +
         static_cast<double>(path) * element_bytes_ * byte_ns_ +
         static_cast<double>(cost.folded) * element_bytes_ * fold_per_byte_;
}

double CollectiveChoice::time(Collective collective, int size, std::int64_t count) const {
  return time(of(collective, size, count), problem_of(collective, size, 0, count));
}

const Algorithm& CollectiveChoice::of(Collective collective, int size, std::int64_t count) const {
  if (const auto named = names_.find(collective); named != names_.end())
    return registry_->find(collective, named->second);
  const Problem problem = problem_of(collective, size, 0, count);
  const Algorithm* best = nullptr;
  double least = 0;
  for (const Algorithm* algorithm : registry_->of(collective)) {
    if (algorithm->hierarchical || algorithm->pipelined || !refusal(*algorithm, problem).empty())
      continue;
    const double its = time(*algorithm, problem);
    if (best == nullptr || its < least) best = algorithm, least = its;
  }
  return *best;
}

const Parts::Part& Parts::of(Collective collective, Along along, std::int64_t count) {
  const auto key = std::tuple(collective, along, count);
  if (const auto found = parts_.find(key); found != parts_.end()) return found->second;
  StepGroup group = group_of(layout_, rank_, along);
  const auto size = static_cast<int>(group.ranks.size());
  const Algorithm& algorithm = choice_.of(collective, size, count);
  Part part{algorithm.generate(problem_of(collective, size, group.own, count)), std::move(group)};
  return parts_.emplace(key, std::move(part)).first->second;
}

}  // namespace baton::transformer
