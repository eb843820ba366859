#include "transformer/models/language.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "transformer/worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

constexpr std::int32_t vocabulary = 12;

Gpt2Config config() {
  return {
      .vocabulary = vocabulary, .context = 8, .layers = 1, .heads = 4, .d_model = 16, .dropout = 0};
}

/// Tokens that follow a rule: 0, 1, 2, … and again from 0.
Sequences counting() {
  std::vector<std::int32_t> tokens;
  for (std::int32_t i = 0; i < 32 * 8 + 1; ++i) tokens.push_back(i % vocabulary);
  return {tokens, 8, "counting"};
}

std::vector<std::vector<std::pair<Axis, int>>> layouts_of(int ranks) {
  std::vector<std::vector<std::pair<Axis, int>>> layouts{{{Axis::dp, ranks}}};
  if (ranks == 1 || ranks == 2 || ranks == 4) {
    layouts.push_back({{Axis::tp, ranks}});
    layouts.push_back({{Axis::sp, ranks}});
  }
  return layouts;
}

/// Losses of epochs, the loss on data before and after, and text.
struct Trained {
  std::vector<double> numbers;
  std::vector<std::int32_t> text;
};

Trained trained(Communicator& world, const std::vector<std::pair<Axis, int>>& axes, bool sharded) {
  const Mesh mesh(world, axes);
  Gpt2<double> model(config(), {2}, mesh);
  std::unique_ptr<DataParallel<double>> replicas;
  if (sharded) {
    replicas = std::make_unique<FullyShardedDataParallel<double>>(model, mesh);
  } else {
    replicas = std::make_unique<DistributedDataParallel<double>>(model, mesh);
  }
  AdamW<double> adamw(replicas->params(), {.learning_rate = 0.02});
  const Sequences data = counting();
  Trained result;
  const auto validate = [&] {  // 5 sequences, 2 at once: some ranks have none
    result.numbers.push_back(evaluate(model, *replicas, data, 5, 2, mesh));
  };
  validate();
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    const RankData own = partition_dataset(data.size(), 24, mesh, 7, epoch);
    for (std::int64_t step = 0; step < own.steps; ++step) {
      const TokenShare share = share_of_step(data, own, step, mesh);
      result.numbers.push_back(train_step(model, *replicas, share, adamw, mesh).loss);
    }
  }
  validate();
  const std::int32_t prompt[] = {3, 4};
  result.text = generate(model, *replicas, prompt, 9, {.temperature = 0});
  const auto drawn = generate(model, *replicas, prompt, 6, {.temperature = 5, .random = {4}});
  result.text.insert(result.text.end(), drawn.begin(), drawn.end());
  return result;
}

}  // namespace

TEST_CASE("a language model learns a rule and goes on by it, the same on every mesh") {
  Trained expected;
  on_ranks(1, [&](Communicator& world) { expected = trained(world, {{Axis::dp, 1}}, false); });
  CHECK(std::abs(expected.numbers.front() - std::log(double(vocabulary))) < 0.1);
  CHECK(expected.numbers.back() < 0.3);
  on_worlds([&](Communicator& world) {
    for (const auto& axes : layouts_of(world.size())) {
      for (const bool sharded : {false, true}) {
        const Trained found = trained(world, axes, sharded);
        REQUIRE(found.numbers.size() == expected.numbers.size());
        for (std::size_t i = 0; i < found.numbers.size(); ++i)
          CHECK(equal(found.numbers[i], expected.numbers[i], 1e-12));
        CHECK(found.text == expected.text);
      }
    }
  });
}

#ifndef BATON_TEST_MPI

TEST_CASE("text is drawn by probability, from the most probable tokens, by the seed") {
  const Mesh alone;
  Gpt2<float> model(config(), {2}, alone);
  DistributedDataParallel<float> replicas(model, alone);
  const std::int32_t prompt[] = {1};
  const auto write = [&](const Sampling& sampling) {
    return generate(model, replicas, prompt, 20, sampling);
  };
  CHECK(write({.random = {1}}) == write({.random = {1}}));
  CHECK(write({.random = {1}}) != write({.random = {2}}));
  CHECK(write({.top = 1, .random = {1}}) == write({.temperature = 0}));
  CHECK(write({.temperature = 1e-6, .random = {1}}) == write({.temperature = 0}));
}

TEST_CASE("language models refuse impossible requests") {
  const Mesh alone;
  Gpt2<float> model(config(), {2}, alone);
  DistributedDataParallel<float> replicas(model, alone);
  const auto refused = [](const auto& call, const std::vector<std::string>& parts) {
    const Error error = error_of(call);
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
  };
  const Sequences data = counting();
  AdamW<float> adamw(replicas.params());
  const RankData own = partition_dataset(data.size(), 2, alone, 7);
  refused(
      [&] {
        train_step(model, replicas, share_of_step(data, own, 0, alone), adamw, alone,
                   {.micro_batches = 3});
      },
      {"at most the 2 samples", "found 3"});
  refused([&] { evaluate(model, replicas, data, 33, 2, alone); },
          {"1 to 32 sequences", "found 33"});
  refused([&] { evaluate(model, replicas, data, 0, 2, alone); }, {"found 0"});
  const std::int32_t prompt[] = {1};
  refused([&] { generate(model, replicas, std::span(prompt, 0), 1); }, {"a prompt", "found 0"});
  refused([&] { generate(model, replicas, prompt, 1, {.temperature = -1}); }, {"found 1", "-1"});
}

TEST_CASE("files are read on all ranks, or on none") {
  on_ranks(3, [](Communicator& world) {
    std::vector<int> read;
    on_all_ranks(world, [&] { read.push_back(world.rank()); });
    CHECK(read == std::vector<int>{world.rank()});
    const Error error = error_of([&] {
      on_all_ranks(world, [&] {
        if (world.rank() > 0) {
          throw Error(ErrorCode::invalid_argument,
                      "rank " + std::to_string(world.rank()) + " finds nothing");
        }
      });
    });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(holds(error.what(), {"rank 1 finds nothing"}), std::string(error.what()));
  });
}

#endif
