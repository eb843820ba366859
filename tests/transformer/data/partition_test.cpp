#include "transformer/data/partition.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "support/ranks.hpp"
#include "transformer/worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

std::vector<std::int64_t> all_of(const Partition& partition) {
  const auto samples = partition.samples(0, partition.size());
  return {samples.begin(), samples.end()};
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  return values;
}

std::vector<std::int64_t> counted_to(std::int64_t size) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(size));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

}  // namespace

TEST_CASE("partitions have no sample in common and together have all") {
  for (const std::int64_t size : {0, 1, 2, 10, 97, 1000}) {
    for (const std::vector<double>& fractions : {std::vector<double>{1},
                                                 {0.5, 0.5},
                                                 {0.7, 0.2, 0.1},
                                                 {0, 1},
                                                 {1.0 / 3, 1.0 / 3, 1.0 / 3}}) {
      const DataPartitioner data(size, fractions, 1234);
      std::vector<std::int64_t> together;
      for (std::size_t rank = 0; rank < fractions.size(); ++rank) {
        const auto part = all_of(data.use(static_cast<int>(rank)));
        const double exact = fractions[rank] * static_cast<double>(size);
        CHECK(std::abs(static_cast<double>(part.size()) - exact) <= 1);
        together.insert(together.end(), part.begin(), part.end());
      }
      CHECK(sorted(together) == counted_to(size));
    }
  }
}

TEST_CASE("the seed decides the order") {
  const auto order = [](std::uint64_t seed) {
    return all_of(DataPartitioner(500, {1}, seed).use(0));
  };
  CHECK(order(1) == order(1));
  CHECK(order(1) != order(2));
  CHECK(order(1) != counted_to(500));
}

TEST_CASE("every order of few samples comes about equally often") {
  constexpr int seeds = 6000;
  std::map<std::vector<std::int64_t>, int> orders;
  for (int seed = 0; seed < seeds; ++seed) {
    ++orders[all_of(DataPartitioner(3, {1}, static_cast<std::uint64_t>(seed)).use(0))];
  }
  CHECK(orders.size() == 6);
  // 1000 of each are expected, with a standard deviation of 29.
  for (const auto& [order, count] : orders) CHECK(std::abs(count - seeds / 6) < 150);
}

TEST_CASE("partition_dataset: a step has the same batch on any number of ranks") {
  constexpr std::int64_t size = 50, batch = 12;
  const Partition alone = partition_dataset(size, batch, Mesh(), 3, 1).partition;
  CHECK(sorted(all_of(alone)) == counted_to(size));
  CHECK(all_of(alone) != all_of(partition_dataset(size, batch, Mesh(), 3, 2).partition));
  CHECK(all_of(alone) != all_of(partition_dataset(size, batch, Mesh(), 4, 1).partition));
  for (const int dp : {1, 2, 3, 4}) {
    std::vector<Partition> partitions(static_cast<std::size_t>(dp));
    on_ranks(2 * dp, [&](Communicator& world) {
      const Mesh mesh(world, {{Axis::dp, dp}, {Axis::tp, 2}});
      const RankData data = partition_dataset(size, batch, mesh, 3, 1);
      CHECK(data.batch == batch / dp);
      CHECK(data.steps == 4);
      const int rank = mesh.rank(Axis::dp);
      if (mesh.rank(Axis::tp) == 0) partitions[static_cast<std::size_t>(rank)] = data.partition;
      world.barrier();
      if (mesh.rank(Axis::tp) == 1) {
        CHECK(all_of(partitions[static_cast<std::size_t>(rank)]) == all_of(data.partition));
      }
    });
    std::vector<std::int64_t> together;
    for (std::int64_t step = 0; step < 4; ++step) {
      for (const Partition& partition : partitions) {
        const auto own = partition.samples(step * batch / dp, batch / dp);
        together.insert(together.end(), own.begin(), own.end());
      }
    }
    const auto expected = alone.samples(0, 4 * batch);
    CHECK(together == std::vector<std::int64_t>(expected.begin(), expected.end()));
    for (const Partition& partition : partitions) {  // the two samples that fill no batch
      const std::int64_t begin = 4 * batch / dp, rest = partition.size() - begin;
      const auto own = partition.samples(begin, rest);
      together.insert(together.end(), own.begin(), own.end());
    }
    CHECK(sorted(together) == counted_to(size));
  }
}

TEST_CASE("partition_dataset: a batch is a multiple of the ranks of dp, and there is one") {
  on_ranks(6, [](Communicator& world) {
    const Mesh mesh(world, {{Axis::dp, 3}, {Axis::tp, 2}});
    const auto refused = [&](std::int64_t size, std::int64_t batch,
                             const std::vector<std::string>& parts) {
      CHECK(holds(error_of([&] { partition_dataset(size, batch, mesh, 3); }).what(), parts));
    };
    refused(50, 10, {"batch", "multiple of 3", "dp", "10"});
    refused(50, 0, {"batch", "at least 1", "0"});
    refused(11, 12, {"data", "at least 12", "11"});
  });
}

TEST_CASE("wrong fractions, ranks and samples are refused") {
  const auto refused = [](const auto& call, const std::vector<std::string>& parts) {
    const Error error = error_of(call);
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
  };
  using Fractions = std::vector<double>;
  refused([] { DataPartitioner(10, Fractions{0.5, 0.4}, 1); }, {"add up to 1", "0.9"});
  refused([] { DataPartitioner(10, Fractions{}, 1); }, {"add up to 1", "0"});
  refused([] { DataPartitioner(10, Fractions{1.5, -0.5}, 1); }, {"at least 0", "-0.5"});
  refused([] { DataPartitioner(10, Fractions{NAN, 1}, 1); }, {"at least 0", "nan"});
  refused([] { DataPartitioner(-1, Fractions{1}, 1); }, {"number of samples", "-1"});
  refused([] { DataPartitioner(10, Fractions{0.5, 0.5}, 1).use(2); }, {"rank from 0 to 1", "2"});
  refused([] { DataPartitioner(10, Fractions{0.5, 0.5}, 1).use(-1); }, {"rank from 0 to 1", "-1"});
  const Partition part = DataPartitioner(10, Fractions{0.5, 0.5}, 1).use(0);
  refused([&] { static_cast<void>(part[5]); }, {"[0, 5)", "[5, 6)"});
  refused([&] { static_cast<void>(part[-1]); }, {"[0, 5)", "[-1, 0)"});
  refused([&] { static_cast<void>(part.samples(2, 4)); }, {"[0, 5)", "[2, 6)"});
}
