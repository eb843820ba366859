#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "cost/cost.hpp"
#include "simulate/support.hpp"
#include "support/sanitizer.hpp"

using namespace baton;
using simulate_support::by_hand;
using simulate_support::schedules_of;

namespace {

/// Calls use(algorithm, problem) for every algorithm that serves ranks on these hosts.
template <class Use>
void for_algorithms(int ranks, const std::shared_ptr<const Hosts>& hosts, std::int64_t count,
                    const Use& use) {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    Problem problem;
    problem.collective = algorithm.collective;
    problem.size = ranks;
    problem.root = rooted(algorithm.collective) ? ranks / 2 : 0;
    problem.count = algorithm.collective == Collective::barrier ? 1 : count;
    problem.hosts = hosts;
    if (algorithm.pipelined) problem.blocks = 3;
    if (!refusal(algorithm, problem).empty()) continue;
    CAPTURE(std::string(name(algorithm.collective)));
    CAPTURE(algorithm.name);
    CAPTURE(ranks);
    use(algorithm, problem);
  }
}

std::shared_ptr<const Hosts> pairs(int ranks) {
  std::vector<int> host_of;
  for (int r = 0; r < ranks; ++r) host_of.push_back(r / 2);
  return host_grouping(host_of);
}

const auto sizes = support::under_sanitizer ? std::vector{1, 2, 3, 4, 5}
                                            : std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9, 16};

}  // namespace

TEST_CASE("every algorithm comes to its end, eager or not, in any window, with what it sends") {
  Network network = by_hand();
  for (const int ranks : sizes) {
    for (const auto& hosts : {std::shared_ptr<const Hosts>(), pairs(ranks)}) {
      int simulated = 0;
      for_algorithms(ranks, hosts, 7 * ranks, [&](const Algorithm& algorithm, const Problem& p) {
        for (const std::int64_t segment : {0, 3}) {
          const auto schedules = schedules_of(algorithm, p, segment);
          std::int64_t messages = 0, bytes = 0, steps = 0;
          for (const Schedule& schedule : *schedules) {
            const Schedule s = packed(schedule);
            messages += s.messages();
            bytes += 4 * s.sent();
            steps += static_cast<std::int64_t>(s.steps().size());
          }
          for (const std::int64_t eager : {std::int64_t{0}, std::int64_t{1} << 40}) {
            for (const int window : {1, 2}) {
              for (const int processors : {0, 3}) {
                network.within.eager = network.across.eager = eager;
                network.processors = processors;
                SimulateOptions options;
                options.hosts = hosts;
                options.window = window;
                const Prediction got = simulate(schedules, 4, network, options);
                CHECK(got.messages == messages);
                CHECK(got.steps == steps);
                std::int64_t sent = got.bytes_within, received = got.bytes_within;
                for (const HostBytes& host : got.hosts) {
                  sent += host.sent;
                  received += host.received;
                }
                CHECK(sent == bytes);
                CHECK(received == bytes);
                CHECK((got.total > 0 || messages == 0));
                ++simulated;
              }
            }
          }
        }
      });
      CHECK(simulated > 200);
    }
  }
}

TEST_CASE("the same input gives the same times, from kept schedules or from a generator") {
  const Network network = network_named("virtual-cluster-1gbit");
  for_algorithms(9, pairs(9), 1000, [&](const Algorithm& algorithm, const Problem& p) {
    SimulateOptions options;
    options.hosts = p.hosts;
    const Prediction first = simulate(schedules_of(algorithm, p), 4, network, options);
    const auto generated = [&](int rank) { return algorithm.generate(p.at(rank)); };
    const Prediction second = simulate(9, generated, 4, network, options);
    CHECK(first.finish == second.finish);
    CHECK(first.events == second.events);
    options.timeline = true;
    const Prediction third = simulate(9, generated, 4, network, options);
    CHECK(first.finish == third.finish);
    REQUIRE(third.timeline);
    CHECK(static_cast<std::int64_t>(third.timeline->events.size()) == first.steps);
    std::vector<std::int64_t> last(9, 0);
    std::int64_t before = 0;
    int rank = 0;
    for (const Event& event : third.timeline->events) {
      CHECK(event.posted <= event.start);
      CHECK(event.start <= event.end);
      if (event.rank != rank) before = 0;
      rank = event.rank;
      CHECK(event.posted >= before);
      before = event.posted;
      auto& end = last[static_cast<std::size_t>(event.rank)];
      end = std::max(end, event.end);
    }
    for (std::size_t r = 0; r < last.size(); ++r) CHECK(last[r] <= first.finish[r]);
  });
}

TEST_CASE("schedules are cut as segmented() cuts each alone") {
  const Network network = network_named("infiniband-100g");
  for (const int ranks : {9, 16}) {
    for_algorithms(ranks, pairs(ranks), 100, [&](const Algorithm& algorithm, const Problem& p) {
      SimulateOptions options;
      options.hosts = p.hosts;
      const Prediction before = simulate(schedules_of(algorithm, p, 7), 4, network, options);
      options.segment = 7;
      const Prediction generated = simulate(
          ranks, [&](int rank) { return algorithm.generate(p.at(rank)); }, 4, network, options);
      const Prediction kept = simulate(schedules_of(algorithm, p), 4, network, options);
      for (const Prediction& cut : {generated, kept}) {
        CHECK(cut.finish == before.finish);
        CHECK(cut.events == before.events);
        CHECK(cut.steps == before.steps);
        CHECK(cut.bytes_within == before.bytes_within);
      }
    });
  }
}

TEST_CASE("ranks that are followed apart, by several threads, take as long as all in one queue") {
  constexpr int ranks = 1100;
  Network network = network_named("infiniband-100g");
  for (const auto& hosts : {std::shared_ptr<const Hosts>(), pairs(ranks)}) {
    for (const auto& algorithm : {std::pair("all_reduce", "recursive_doubling"),
                                  {"all_reduce", "circulant"},
                                  {"broadcast", "chain"},
                                  {"barrier", "dissemination"}}) {
      const char *const collective = algorithm.first, *const name = algorithm.second;
      CAPTURE(name);
      SimulateOptions options;
      options.hosts = hosts;
      network.processors = 0;
      const Prediction apart =
          simulate_support::predicted(collective, name, ranks, 20'000, network, options, 5'000);
      network.processors = ranks;  // one for each, but in one line for them
      const Prediction together =
          simulate_support::predicted(collective, name, ranks, 20'000, network, options, 5'000);
      CHECK(apart.finish == together.finish);
      CHECK(apart.events == together.events);
      CHECK(apart.bytes_within == together.bytes_within);
      REQUIRE(apart.hosts.size() == together.hosts.size());
      for (std::size_t h = 0; h < apart.hosts.size(); ++h) {
        CHECK(apart.hosts[h].sent == together.hosts[h].sent);
        CHECK(apart.hosts[h].received == together.hosts[h].received);
      }
    }
  }
}

TEST_CASE("no algorithm is faster than its latencies and its bytes") {
  const Network network = by_hand();
  for (const int ranks : sizes) {
    for_algorithms(ranks, nullptr, 60 * ranks, [&](const Algorithm& algorithm, const Problem& p) {
      if (ranks == 1) return;
      const Prediction got = simulate(schedules_of(algorithm, p), 4, network);
      std::int64_t most = 0, depth = 1;
      for (int r = 0; r < ranks; ++r) {
        const Cost cost = algorithm.cost(p.at(r));
        depth = std::max(depth, cost.depth);
        most = std::max({most, cost.sent, cost.received});
      }
      CHECK(got.total >= 1000 * depth);
      if (algorithm.collective != Collective::barrier) CHECK(got.total >= 4 * most);
    });
  }
}

TEST_CASE("no host's wire carries more than its rate, in packets or whole, at once or later") {
  // Half of its bytes within 50 and so on: a bucket, and messages of many packets.
  for (const std::int64_t packet : {0, 7, 64, 4096}) {
    Network network = by_hand();
    network.across.packet = packet;
    network.across.burst = 100;
    network.across.burst_per_byte = 0.5;
    for_algorithms(6, pairs(6), 2000, [&](const Algorithm& algorithm, const Problem& p) {
      SimulateOptions options;
      options.hosts = p.hosts;
      for (const std::int64_t segment : {0, 50}) {
        for (const int calls : {1, 3}) {
          options.calls = calls;
          const Prediction got = simulate(schedules_of(algorithm, p, segment), 4, network, options);
          for (const HostBytes& host : got.hosts)
            CHECK(got.total >= std::max(host.sent, host.received) - network.across.burst);
        }
      }
    });
  }
}

TEST_CASE("the closed forms agree with the simulator") {
  // The parameters that both have; messages that are not cut, since there the closed form is one.
  const costs::LinkParameters link{
      .latency = 1e-6, .overhead = 0.5e-6, .per_byte = 1e-9, .fold_per_byte = 0.1e-9};
  Network network;
  network.fold = TimeTable::line(0, 0.1);
  network.within.latency = 1000;
  network.within.send = network.within.receive = TimeTable({{0, 250}});
  network.within.wire = TimeTable::line(0, 1);
  // They take every round for a latency, though some of their short messages are under way
  // together.
  const std::vector<std::string> overlapping{"linear", "gather_broadcast", "in_order", "pairwise",
                                             "gather_scatter"};
  struct Best {
    double expected = 1e300, simulated = 0, least = 1e300;
  };
  for (const int ranks : {2, 3, 4, 5, 7, 8, 16, 32}) {
    for (const std::int64_t count : {16, 4096, 1 << 18}) {
      CAPTURE(count);
      std::map<Collective, Best> best;
      for_algorithms(ranks, nullptr, count, [&](const Algorithm& algorithm, const Problem& p) {
        if (algorithm.pipelined || algorithm.collective == Collective::barrier) return;
        const auto simulated =
            static_cast<double>(simulate(schedules_of(algorithm, p), 4, network).total);
        const double expected = 1e9 * costs::estimate(algorithm, p, 4, 0, {link, link});
        const bool overlaps =
            std::find(overlapping.begin(), overlapping.end(), algorithm.name) != overlapping.end();
        CHECK(simulated < 1.5 * expected);
        if (!overlaps || count == 1 << 18) CHECK(simulated > 0.55 * expected);
        Best& b = best[algorithm.collective];
        b.least = std::min(b.least, simulated);
        if (expected < b.expected) {
          b.expected = expected;
          b.simulated = simulated;
        }
      });
      for (const auto& one : best) {
        const Best& b = one.second;
        CAPTURE(std::string(name(one.first)));
        CAPTURE(ranks);
        CHECK(b.simulated < (count == 16 ? 1.8 : 1.4) * b.least);
      }
    }
  }
}
