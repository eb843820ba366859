#pragma once
// Networks, schedules and options for tests of the simulator.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "baton/schedule/passes.hpp"
#include "baton/simulate.hpp"

namespace simulate_support {

/// Times that are easily told apart: 100 to send, 1000 on the way, 10 and 1 for each byte on the
/// wire, 200 to take, 50 to post a receive, 30 and 1 for each byte to fold.
inline baton::Network by_hand() {
  baton::Network network;
  network.name = "by hand";
  network.fold = baton::TimeTable::line(30, 1);
  network.within.latency = 1000;
  network.within.post = 50;
  network.within.send = baton::TimeTable({{0, 100}});
  network.within.receive = baton::TimeTable({{0, 200}});
  network.within.wire = baton::TimeTable::line(10, 1);
  network.across = network.within;
  return network;
}

inline baton::SimulateOptions on_hosts(const std::vector<int>& host_of) {
  baton::SimulateOptions options;
  options.hosts = baton::host_grouping(host_of);
  return options;
}

inline std::shared_ptr<const std::vector<baton::Schedule>> schedules_of(
    const baton::Algorithm& algorithm, const baton::Problem& problem, std::int64_t segment = 0) {
  auto schedules = std::make_shared<std::vector<baton::Schedule>>();
  for (int r = 0; r < problem.size; ++r) {
    schedules->push_back(baton::segmented(algorithm.generate(problem.at(r)), segment));
  }
  return schedules;
}

/// Of `count` elements of 4 bytes.
inline baton::Prediction predicted(const std::string& collective, const std::string& algorithm,
                                   int ranks, std::int64_t count, const baton::Network& network,
                                   const baton::SimulateOptions& options = {},
                                   std::int64_t segment = 0) {
  static const baton::Registry registry = baton::Registry::builtin();
  baton::Problem problem;
  problem.collective = baton::collective_named(collective);
  problem.size = ranks;
  problem.count = count;
  problem.hosts = options.hosts;
  const baton::Algorithm& found = registry.find(problem.collective, algorithm);
  return baton::simulate(schedules_of(found, problem, segment), 4, network, options);
}

/// Schedules that are written by hand, of elements of 4 bytes in the output.
class Program {
 public:
  explicit Program(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  class Rank {
   public:
    Rank& send(int peer, std::int64_t offset, std::int64_t length) {
      return add(baton::StepKind::send, peer, {baton::contiguous(buffer, offset, length)});
    }
    Rank& recv(int peer, std::int64_t offset, std::int64_t length) {
      return add(baton::StepKind::recv, peer, {baton::contiguous(buffer, offset, length)});
    }
    Rank& copy(std::int64_t to, std::int64_t from, std::int64_t length) {
      return add(baton::StepKind::copy, -1,
                 {baton::contiguous(buffer, to, length), baton::contiguous(buffer, from, length)});
    }

   private:
    friend class Program;
    static constexpr auto buffer = baton::Buffer::output;
    Rank& add(baton::StepKind kind, int peer, const baton::Regions& operands) {
      baton::Step step;
      step.kind = kind;
      step.peer = peer;
      step.first = static_cast<std::uint32_t>(regions_.size());
      for (std::size_t i = 0; i < operands.size(); ++i) step.parts[i] = 1;
      regions_.insert(regions_.end(), operands.begin(), operands.end());
      steps_.push_back(step);
      return *this;
    }
    std::vector<baton::Step> steps_;
    baton::Regions regions_;
  };

  Rank& rank(int r) { return ranks_[static_cast<std::size_t>(r)]; }
  baton::Prediction simulated(const baton::Network& network,
                              const baton::SimulateOptions& options = {}) const {
    auto schedules = std::make_shared<std::vector<baton::Schedule>>();
    for (const Rank& rank : ranks_) {
      baton::Schedule::Header header;
      header.algorithm = "own";
      header.size = static_cast<int>(ranks_.size());
      header.rank = static_cast<int>(schedules->size());
      header.output = 1000;
      schedules->emplace_back(header, rank.steps_, rank.regions_);
    }
    return baton::simulate(schedules, 4, network, options);
  }

 private:
  std::vector<Rank> ranks_;
};

}  // namespace simulate_support
