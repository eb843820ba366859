// What `baton bench` computes from given samples: intervals, order, limits.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cli/contest.hpp"
#include "cli/network.hpp"
#include "cli/sample.hpp"
#include "cli/statistics.hpp"

using namespace baton;
using namespace baton::cli;

namespace {

/// n, n - 1, … 1: the k-th smallest is k.
std::vector<double> countdown(int n) {
  std::vector<double> values;
  for (; n > 0; --n) values.push_back(n);
  return values;
}

Exercise exercise_of(Collective collective, int ranks, std::int64_t bytes, int root = 0) {
  return flat_exercise(collective, ranks, bytes / 4, Datatype::f32, OpKind::sum, root);
}

Path path_of(double latency, std::vector<std::pair<std::int64_t, double>> bandwidths) {
  Path path;
  path.latency = latency;
  for (const auto& [bytes, per_second] : bandwidths) {
    path.paces.push_back({bytes, {static_cast<double>(bytes) / per_second}});
  }
  return path;
}

}  // namespace

TEST_CASE("medians and quartiles") {
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2.5);
  CHECK(quantile({10, 20, 30, 40, 50}, 0.25) == 20);
  CHECK(spread({10, 20, 30, 40, 50}) == 10);
  CHECK(median({7}) == 7);
}

TEST_CASE("the interval of a median has the order statistics and the coverage of the tables") {
  // n, the rank of the lower bound from below and of the upper one, the coverage
  struct Row {
    int n, low, high;
    double coverage;
  };
  for (const Row& row : {Row{1, 1, 1, 0}, Row{2, 1, 2, 0.5}, Row{5, 1, 5, 0.9375},
                         Row{6, 1, 6, 0.96875}, Row{8, 1, 8, 0.9921875}, Row{9, 2, 8, 0.9609375},
                         Row{20, 6, 15, 0.9586}, Row{100, 40, 61, 0.9648}}) {
    CAPTURE(row.n);
    const Interval found = median_interval(countdown(row.n));
    CHECK(found.median == (row.n + 1) / 2.0);
    CHECK(found.low == row.low);
    CHECK(found.high == row.high);
    CHECK(found.coverage == doctest::Approx(row.coverage).epsilon(1e-4));
  }
  CHECK(median_interval(countdown(1000)).coverage >= 0.95);
}

TEST_CASE("sides are sampled there and back") {
  std::string order;
  const auto samples = alternate(3, 4, [&](std::size_t side) {
    order += static_cast<char>('A' + side);
    return static_cast<double>(order.size());
  });
  CHECK(order == "ABCCBAABCCBA");
  CHECK(samples[0] == std::vector<double>{1, 6, 7, 12});
  CHECK(samples[2] == std::vector<double>{3, 4, 9, 10});
}

TEST_CASE("a ratio is the median over pairs of theirs divided by ours") {
  // The ratio of medians would be 3 / 2.
  std::vector<Contestant> sides(2);
  sides[0].ours = true;
  sides[0].seconds = {1, 2, 4};
  sides[1].seconds = {4, 2, 3};
  const auto found = comparisons_of(sides);
  REQUIRE(found.size() == 1);
  CHECK(found[0].ratio.median == 1);
  CHECK(found[0].ratio.low == 0.75);
  CHECK(found[0].ratio.high == 4);
}

TEST_CASE("the API is compared with all built-ins, a drop-in with the one it stands for") {
  std::vector<Contestant> sides(5);
  for (Contestant& side : sides) side.seconds = {1};
  sides[0].ours = sides[1].ours = sides[2].ours = true;
  sides[1].function = sides[3].function = "MPI_Reduce_scatter_block";
  sides[2].function = sides[4].function = "MPI_Reduce_scatter";
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const Comparison& c : comparisons_of(sides)) pairs.emplace_back(c.ours, c.theirs);
  CHECK(pairs == std::vector<std::pair<std::size_t, std::size_t>>{{0, 3}, {0, 4}, {1, 3}, {2, 4}});
}

TEST_CASE("bytes that the busiest rank and host must send or receive") {
  const std::int64_t n = 24 << 10;
  const std::vector<int> one{0, 0, 0, 0, 0, 0}, own{0, 1, 2, 3, 4, 5}, uneven{0, 0, 0, 1, 1, 2};
  struct Row {
    Collective collective;
    double rank, of_own, of_uneven;  // in units of n; hosts' where each has one rank, or 3, 2, 1
  };
  for (const Row& row :
       {Row{Collective::broadcast, 1, 1, 1}, Row{Collective::reduce, 1, 1, 1},
        Row{Collective::all_reduce, 10 / 6., 10 / 6., 4 / 3.},
        Row{Collective::all_gather, 5 / 6., 5 / 6., 5 / 6.},
        Row{Collective::reduce_scatter, 5 / 6., 5 / 6., 5 / 6.},
        Row{Collective::all_to_all, 5 / 6., 5 / 6., 9 / 6.},
        Row{Collective::gather, 5 / 6., 5 / 6., 4 / 6.},
        Row{Collective::scatter, 5 / 6., 5 / 6., 4 / 6.}, Row{Collective::scan, 1, 1, 1}}) {
    CAPTURE(name(row.collective));
    const Exercise e = exercise_of(row.collective, 6, n, 3);
    CHECK(demand_of(e, one).rank_bytes == doctest::Approx(row.rank * n));
    CHECK(demand_of(e, one).host_bytes == 0);
    CHECK(demand_of(e, one).block == (row.rank == 1 ? n : n / 6));
    CHECK(demand_of(e, own).host_bytes == doctest::Approx(row.of_own * n));
    CHECK(demand_of(e, uneven).host_bytes == doctest::Approx(row.of_uneven * n));
    CHECK(demand_of(e, one).rounds == 3);
    CHECK(demand_of(e, one).host_rounds == 0);
    CHECK(demand_of(e, own).host_rounds == 3);
    CHECK(demand_of(e, uneven).host_rounds == 1);
  }
  CHECK(demand_of(exercise_of(Collective::barrier, 5, 0), {0, 0, 0, 0, 0}).rounds == 3);
  CHECK(demand_of(exercise_of(Collective::all_reduce, 6, 0), one).rounds == 0);
  CHECK(demand_of(exercise_of(Collective::all_reduce, 1, n), {0}).rounds == 0);
}

TEST_CASE("the limit is latency and bytes at the bandwidth of messages as large or larger") {
  cli::Network network;
  network.within = path_of(1e-6, {{1000, 1e9}, {1000000, 2e9}, {100000, 5e9}});
  CHECK(network.within->bandwidth(8) == doctest::Approx(5e9));
  CHECK(network.within->bandwidth(1000000) == doctest::Approx(2e9));
  CHECK(network.within->bandwidth(9000000) == doctest::Approx(2e9));
  const Demand two_way{1000000, 0, 1000000, 3, 0, false}, one_way{1000000, 0, 1000000, 3, 0, true};
  CHECK(lower_bound(two_way, network, 10) == doctest::Approx(3e-6 + 5e-4));
  CHECK(lower_bound(one_way, network, 10) == doctest::Approx(3e-7 + 5e-4));
  const Demand in_blocks{1000000, 0, 1000, 3, 0, false};
  CHECK(lower_bound(in_blocks, network, 10) == doctest::Approx(3e-6 + 2e-4));
  CHECK(lower_bound(Demand{}, network, 1) == 0);

  network.across = path_of(50e-6, {{1000000, 1e8}});
  const Demand hosts{1000000, 500000, 1000000, 3, 2, false};
  CHECK(lower_bound(hosts, network, 1) == doctest::Approx(2 * 50e-6 + 5e-3));
  const Demand within{1000000, 1000, 1000000, 3, 0, false};  // the link is not what limits
  CHECK(lower_bound(within, network, 1) == doctest::Approx(3e-6 + 5e-4));
  network.within.reset();
  CHECK(lower_bound(hosts, network, 1) == doctest::Approx(3 * 50e-6 + 1e-2));
}
