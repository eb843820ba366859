#include "transformer/pipeline/split.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cmath>
#include <deque>
#include <functional>
#include <numeric>

#include "support/ranks.hpp"
#include "transformer/compare.hpp"
#include "transformer/language_cases.hpp"
#include "transformer/linear_layers.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

void refused(const std::function<void()>& call, const std::vector<std::string>& parts) {
  const Error error = error_of(call);
  CHECK(error.code == ErrorCode::invalid_argument);
  CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
}

double most_expensive(const std::vector<double>& costs, const std::vector<Range>& ranges) {
  double most = 0;
  for (const Range& range : ranges) {
    most = std::max(most,
                    std::accumulate(costs.begin() + range.begin, costs.begin() + range.end, 0.0));
  }
  return most;
}

/// The least cost of the most expensive of so many partitions, by trying all.
double least_of_all(const std::vector<double>& costs, std::size_t from, int partitions) {
  if (partitions == 1)
    return std::accumulate(costs.begin() + std::ptrdiff_t(from), costs.end(), 0.0);
  double least = HUGE_VAL, first = 0;
  for (std::size_t end = from + 1; end + std::size_t(partitions) <= costs.size() + 1; ++end) {
    first += costs[end - 1];
    least = std::min(least, std::max(first, least_of_all(costs, end, partitions - 1)));
  }
  return least;
}

/// Layers of these sizes, with gelu between.
Sequential<double> row(const std::vector<std::int64_t>& sizes) {
  Sequential<double> row;
  for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
    const std::string name = fmt::format("layer{}", l);
    row.add(name, std::make_shared<Linear<double>>(name, sizes[l], sizes[l + 1], true, Random{1}));
    row.add(name + ".gelu", std::make_shared<Activate<double>>(Activation::gelu));
  }
  return row;
}

double elements_of(Model<double>& model) {
  double elements = 0;
  for (const Param<double>* param : model.params()) elements += double(param->value.size());
  return elements;
}

const Gpt2Config three_blocks{
    .vocabulary = 12, .context = 8, .layers = 3, .heads = 2, .d_model = 8};

}  // namespace

TEST_CASE("partitions by cost are contiguous, and none can be cheaper") {
  int tried = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const int layers = 1 + int(seed % 8);
    std::vector<double> costs;
    for (int l = 0; l < layers; ++l)  // small whole numbers, so that sums are exact and often equal
      costs.push_back(double(Random{seed}.word(std::uint64_t(l)) % (seed % 3 == 0 ? 3 : 50)));
    for (int partitions = 1; partitions <= layers; ++partitions) {
      CAPTURE(seed);
      CAPTURE(partitions);
      const auto ranges = split_by_cost(costs, partitions);
      REQUIRE(ranges.size() == std::size_t(partitions));
      std::int64_t at = 0;
      for (const Range& range : ranges) {
        CHECK(range.begin == at);
        CHECK(range.size() >= 1);
        at = range.end;
      }
      CHECK(at == layers);
      CHECK(most_expensive(costs, ranges) == least_of_all(costs, 0, partitions));
      ++tried;
    }
  }
  CHECK(tried > 200);
  using Ranges = std::vector<Range>;
  CHECK(split_by_cost({1, 1, 1, 1, 1, 1, 1}, 4) == Ranges{{0, 1}, {1, 3}, {3, 5}, {5, 7}});
  CHECK(split_by_cost({5, 1, 1, 1, 1, 1}, 2) == Ranges{{0, 1}, {1, 6}});
  CHECK(split_by_cost({1, 1, 1, 1, 9}, 2) == Ranges{{0, 4}, {4, 5}});
  CHECK(split_by_cost({0, 0, 0}, 3) == Ranges{{0, 1}, {1, 2}, {2, 3}});
}

TEST_CASE("a split that cannot be is refused in a sentence") {
  refused([] { split_by_cost({1, 2}, 3); }, {"at most 2, one for each layer", "found 3"});
  refused([] { split_by_cost({1, 2}, 0); }, {"at least 1 partition", "found 0"});
  refused([] { split_by_cost({}, 1); }, {"at most 0", "found 1"});
  refused([] { split_by_cost({1, -2}, 2); }, {"at least 0", "-2 for layer 1"});
  refused([] { split_by_cost({NAN, 1}, 2); }, {"finite", "nan for layer 0"});
  using Ranges = std::vector<Range>;
  CHECK(split_by_hand(5, {2, 3}) == Ranges{{0, 2}, {2, 3}, {3, 5}});
  CHECK(split_by_hand(5, {}) == Ranges{{0, 5}});
  refused([] { split_by_hand(5, {0}); }, {"from 1 to 4", "found 0 after 0"});
  refused([] { split_by_hand(5, {5}); }, {"from 1 to 4", "found 5 after 0"});
  refused([] { split_by_hand(5, {3, 3}); }, {"rise", "found 3 after 3"});
  refused([] { split_by_hand(2, {1, 2, 3}); }, {"at most 2, one for each layer", "found 4"});
  Sequential<double> layers = row({2, 3, 2});
  refused([&] { split_module(layers, 5); }, {"at most 4, one for each layer", "found 5"});
  refused([&] { split_module(layers, Ranges{{0, 2}, {3, 4}}); }, {"from 2 on", "[3, 4)"});
  refused([&] { split_module(layers, Ranges{{0, 2}, {2, 5}}); }, {"within 4 layers", "[2, 5)"});
  refused([&] { split_module(layers, Ranges{{0, 0}, {0, 4}}); }, {"[0, 0)"});
  refused([&] { split_module(layers, Ranges{{0, 3}}); }, {"all 4 layers", "found 3"});
  refused([&] { seconds_of_layers(layers, Array<double>({1, 2}), 0); }, {"1 repeat", "found 0"});
}

TEST_CASE("modules are split by parameters, by measured time or by hand, and share their layers") {
  Sequential<double> layers = row({2, 100, 3, 3, 3});
  CHECK(parameters_of_layers(layers) == std::vector<double>{300, 0, 303, 0, 12, 0, 12, 0});
  auto parts = split_module(layers, 2);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].layers().size() == 1);  // a layer without parameters joins those that follow
  CHECK(elements_of(parts[0]) == 300);
  CHECK(parts[1].layers()[1].module == layers.layers()[2].module);
  parts = split_module(layers, split_by_hand(8, {2, 6}));
  CHECK(parts[1].layers().size() == 4);

  const auto x = random_array<double>({4, 2}, 3);
  const std::vector<double> seconds = seconds_of_layers(layers, x);
  REQUIRE(seconds.size() == 8);
  for (const double time : seconds) CHECK(time > 0);
  for (const Param<double>* param : layers.params())
    for (const double value : param->grad.span()) CHECK(value == 0);
  CHECK(split_module(layers, split_by_cost(seconds, 8)).size() == 8);

  const auto each = [](std::int64_t l) { return Range{l, l + 1}; };
  for (const std::int64_t blocks : {1, 3}) {
    Gpt2Config config = three_blocks;
    config.layers = blocks;
    const Mesh alone;
    const auto costs = parameters_of_layers(config);
    for (std::int64_t l = 0; l < blocks; ++l) {
      Gpt2<double> part(config, {1}, alone, false, each(l));
      std::int64_t looked_up = 0;  // the table of one block is its head's, too
      if (l == 0) looked_up = config.context * config.d_model;
      if (l == 0 && blocks > 1) looked_up += config.vocabulary * config.d_model;
      CHECK(costs.at(std::size_t(l)) == elements_of(part) - looked_up);
    }
    const TokenShare share{random_batch(config.vocabulary, {2, 8}), 0, 16};
    CHECK(seconds_of_layers<double>(config, share, 1).size() == std::size_t(blocks));
  }
  const Vgg16Config config{.classes = 3, .width = 1.0 / 64};
  const auto costs = parameters_of_layers(config);
  REQUIRE(costs.size() == 16);
  for (std::int64_t l = 0; l < 16; ++l) {
    Vgg16<double> part(config, {1}, each(l));
    CHECK(costs.at(std::size_t(l)) == elements_of(part));
  }
  ImageShare<double> share;
  share.batch = {random_array<double>({1, 3, 32, 32}, 4), {2}};
  share.samples = 1;
  CHECK(seconds_of_layers(config, share, 1).size() == 16);
}

TEST_CASE("all ranks cut by the times that the first one measures") {
  for (const int ranks : {1, 2, 3, 4}) {
    on_ranks(ranks, [&](Communicator& world) {
      const Mesh mesh(world, {{Axis::pp, ranks}});
      int calls = 0;
      const auto measured = [&] {
        ++calls;
        return std::vector<double>{1, 2.5, static_cast<double>(world.rank())};
      };
      CHECK(costs_of_first_rank(mesh, measured) == std::vector<double>{1, 2.5, 0});
      CHECK(calls == (world.rank() == 0 ? 1 : 0));
      refused(
          [&] {
            costs_of_first_rank(mesh, [&] { return split_by_cost({}, 1), std::vector<double>(); });
          },
          {"at most 0, one for each layer, found 1"});
    });
  }
}

TEST_CASE("the messages over cuts are found by a forward pass") {
  using Boundaries = std::vector<Boundary>;
  Sequential<double> layers = row({2, 5, 3, 4});
  const auto x = random_array<double>({7, 2}, 3);
  auto parts = split_module(layers, split_by_hand(6, {1, 3}));
  CHECK(analyze_communication_with_partitions(parts, x) ==
        Boundaries{{{7, 5}, 7 * 5 * 8}, {{7, 3}, 7 * 3 * 8}});
  auto whole = split_module(layers, 1);
  CHECK(analyze_communication_with_partitions(whole, x).empty());
  auto stages = stages_of(parts, x);
  stages[1].start(whole_of(create_batch<double>(1, {5, 2}, {5, 4})), 2);
  CHECK(stages[1].input(0) == Shape{3, 5});
  CHECK(stages[1].output(1) == Shape{2, 3});
  const auto with_shapes = parts_of(layers, split_by_hand(6, {1, 3}), x);
  REQUIRE(with_shapes.size() == 3);
  CHECK(with_shapes[0].input == Shape());
  CHECK(with_shapes[0].output == Shape{7, 5});
  CHECK(with_shapes[1].input == Shape{7, 5});
  CHECK(with_shapes[2].input == Shape{7, 3});
  CHECK(with_shapes[2].output == Shape());
  CHECK(with_shapes[1].layers()[0].module == layers.layers()[1].module);

  on_ranks(2, [](Communicator& world) {
    for (const Cut& cut : cuts_of(2)) {
      CAPTURE(cut.text());
      const Mesh mesh = cut.mesh(world);
      const std::int64_t positions = 8 / cut.sp / (cut.sequence_parallel ? cut.tp : 1);
      const TokenShare share{positions_of(random_batch(12, {3, 8}), mesh), 0, 24};
      std::deque<Gpt2<float>> blocks;
      std::deque<Gpt2Stage<float>> its_stages;
      std::vector<PipelineStage<float>*> all;
      for (std::int64_t l = 0; l < 3; ++l) {
        blocks.emplace_back(three_blocks, Random{1}, mesh, cut.sequence_parallel, Range{l, l + 1});
        its_stages.emplace_back(blocks.back()).start(share, 2);
        all.push_back(&its_stages.back());
      }
      for (const int m : {0, 1}) {
        const Shape shape{2 - m, positions, 8};
        const Boundary expected{shape, shape.elements() * 4};
        CHECK(analyze_communication_with_partitions(all, m) == Boundaries{expected, expected});
        CHECK(all[0]->output(m) == shape);
      }
    }
  });
  const Vgg16Config config{.classes = 3, .width = 1.0 / 64};
  ImageShare<float> share;
  share.batch = {random_array<float>({2, 3, 32, 32}, 4), {2, 1}};
  share.samples = 2;
  std::deque<Vgg16<float>> its_parts;
  std::deque<Vgg16Stage<float>> its_stages;
  std::vector<PipelineStage<float>*> all;
  for (const Range range : {Range{0, 3}, {3, 13}, {13, 15}, {15, 16}}) {
    its_parts.emplace_back(config, Random{1}, range);
    its_stages.emplace_back(its_parts.back()).start(share, 1);
    all.push_back(&its_stages.back());
  }
  const auto found = analyze_communication_with_partitions(all);
  REQUIRE(found.size() == 3);
  CHECK(found[0].shape.elements() == 2 * 2 * 16 * 16);  // two channels after one pooling
  CHECK(found[0].bytes == 2 * 2 * 16 * 16 * 4);
  CHECK(found[1].shape.elements() == 2 * 8);
  CHECK(found[2] == Boundary{{2, 64}, 2 * 64 * 4});
  for (std::size_t s = 0; s < 3; ++s) CHECK(found[s].shape == all[s]->output(0));
}
