// What `baton bench` computes from given samples: intervals, order, limits.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cli/bench/comparison.hpp"
#include "cli/common/statistics.hpp"

using namespace baton;
using namespace baton::cli;
using namespace baton::cli::bench;
using namespace baton::cli::measure;

namespace {

/// n, n - 1, … 1: the k-th smallest is k.
std::vector<double> countdown(int n) {
  std::vector<double> values;
  for (; n > 0; --n) values.push_back(n);
  return values;
}

Case case_of(Collective collective, int ranks, std::int64_t bytes, int root = 0) {
  return flat_case(collective, ranks, bytes / 4, Datatype::f32, OpKind::sum, root);
}

Link link_of(double latency, const std::vector<std::pair<std::int64_t, double>>& bandwidths) {
  Link link;
  link.latency = latency;
  for (const auto& [bytes, per_second] : bandwidths) {
    Exchange& exchange = link.exchanges.emplace_back();
    exchange.bytes = bytes;
    exchange.samples = {static_cast<double>(bytes) / per_second};
  }
  return link;
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
  std::vector<Timed> sides(3);
  std::vector<Timed*> all;
  for (std::size_t side = 0; side < sides.size(); ++side) {
    sides[side].calls = 2;
    sides[side].seconds = [&order, side](int calls) {
      order += static_cast<char>('A' + side);
      return static_cast<double>(order.size()) * calls;
    };
    all.push_back(&sides[side]);
  }
  int rounds = 0;
  sample_in_turn(all, 4, [&] { ++rounds; });
  CHECK(rounds == 4);
  CHECK(order == "ABCCBAABCCBA");
  CHECK(sides[0].samples == std::vector<double>{1, 6, 7, 12});
  CHECK(sides[2].samples == std::vector<double>{3, 4, 9, 10});
}

TEST_CASE("a ratio is the median over pairs of theirs divided by ours") {
  // The ratio of medians would be 3 / 2.
  std::vector<measure::Side> sides(2);
  sides[0].ours = true;
  sides[0].samples = {1, 2, 4};
  sides[1].samples = {4, 2, 3};
  const auto found = ratios_of(sides);
  REQUIRE(found.size() == 1);
  CHECK(found[0].interval.median == 1);
  CHECK(found[0].interval.low == 0.75);
  CHECK(found[0].interval.high == 4);
}

TEST_CASE("the API is compared with all built-ins, a drop-in with the one it stands for") {
  std::vector<measure::Side> sides(5);
  for (measure::Side& side : sides) side.samples = {1};
  sides[0].ours = sides[1].ours = sides[2].ours = true;
  sides[1].function = sides[3].function = "MPI_Reduce_scatter_block";
  sides[2].function = sides[4].function = "MPI_Reduce_scatter";
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const Ratio& c : ratios_of(sides)) pairs.emplace_back(c.ours, c.theirs);
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
    const Case e = case_of(row.collective, 6, n, 3);
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
  CHECK(demand_of(case_of(Collective::barrier, 5, 0), {0, 0, 0, 0, 0}).rounds == 3);
  CHECK(demand_of(case_of(Collective::all_reduce, 6, 0), one).rounds == 0);
  CHECK(demand_of(case_of(Collective::all_reduce, 1, n), {0}).rounds == 0);
}

TEST_CASE("the limit is latency and bytes at the bandwidth of messages as large or larger") {
  Links links;
  links.within = link_of(1e-6, {{1000, 1e9}, {1000000, 2e9}, {100000, 5e9}});
  CHECK(links.within->bandwidth(8) == doctest::Approx(5e9));
  CHECK(links.within->bandwidth(1000000) == doctest::Approx(2e9));
  CHECK(links.within->bandwidth(9000000) == doctest::Approx(2e9));
  const Demand two_way{1000000, 0, 1000000, 3, 0, false}, one_way{1000000, 0, 1000000, 3, 0, true};
  CHECK(lower_bound(two_way, links, 10) == doctest::Approx(3e-6 + 5e-4));
  CHECK(lower_bound(one_way, links, 10) == doctest::Approx(3e-7 + 5e-4));
  const Demand in_blocks{1000000, 0, 1000, 3, 0, false};
  CHECK(lower_bound(in_blocks, links, 10) == doctest::Approx(3e-6 + 2e-4));
  CHECK(lower_bound(Demand{}, links, 1) == 0);

  links.across = link_of(50e-6, {{1000000, 1e8}});
  const Demand hosts{1000000, 500000, 1000000, 3, 2, false};
  CHECK(lower_bound(hosts, links, 1) == doctest::Approx(2 * 50e-6 + 5e-3));
  const Demand within{1000000, 1000, 1000000, 3, 0, false};  // the link is not what limits
  CHECK(lower_bound(within, links, 1) == doctest::Approx(3e-6 + 5e-4));
  links.within.reset();
  CHECK(lower_bound(hosts, links, 1) == doctest::Approx(3 * 50e-6 + 1e-2));
}

TEST_CASE("hosts are counted wherever their ranks are") {
  struct Placed final : World {
    explicit Placed(const std::vector<int>& hosts)
        : World(0, static_cast<int>(hosts.size()), hosts) {}
    std::unique_ptr<Transport> transport() override { return nullptr; }
    void gather(std::span<const std::byte>, std::span<std::byte>) override {}
  };
  CHECK(Placed({0, 0, 0}).host_count() == 1);
  CHECK(Placed({0, 1, 0}).host_count() == 2);
  CHECK(Placed({0, 1, 2, 1}).host_count() == 3);
}
