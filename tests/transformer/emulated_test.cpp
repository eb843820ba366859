// Computations that take time and compute nothing. No test asserts how long they take.

#include "transformer/emulated.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "support/ranks.hpp"
#include "transformer/block.hpp"
#include "transformer/optimizer.hpp"
#include "transformer/training/step.hpp"

using namespace baton;
using namespace baton::transformer;

namespace {

constexpr EmulatedSpeed fast{.operations = 1e6, .optimizer_ns = 0};

}  // namespace

TEST_CASE("emulated operations leave their results as they are") {
  Array<float> x({4, 8}), weight({16, 8}), y = Array<float>::uninitialized({4, 16});
  std::ranges::fill(x.span(), 1.0f);
  std::ranges::fill(weight.span(), 2.0f);
  std::ranges::fill(y.span(), 7.0f);
  CHECK(!emulates());
  {
    const EmulationScope scope(fast);
    CHECK(emulates());
    linear<float>(x, weight, View<float>(), y.view());
    activate<float>(Activation::relu, x, x.view());
    CHECK(cross_entropy<float>(std::as_const(y).view(), View<const std::int32_t>(nullptr, {4}), 1,
                               {}) == 0);
  }
  CHECK(!emulates());
  CHECK(std::ranges::all_of(y.span(), [](float value) { return value == 7; }));
  linear<float>(x, weight, View<float>(), y.view());
  CHECK(std::ranges::all_of(y.span(), [](float value) { return value == 16; }));
}

TEST_CASE("emulated computations take at least their time, all together") {
  constexpr double operations = 2. * 64 * 512 * 512;
  const Array<float> x({64, 512}), weight({512, 512}), row({1, 512});
  Array<float> y({64, 512}), out({1, 512});
  Param<float> param("p", Array<float>({100, 100}));
  AdamW<float> adamw({&param});
  const EmulationScope scope({.operations = 10, .optimizer_ns = 100});
  const auto begin = std::chrono::steady_clock::now();
  linear<float>(x, weight, View<float>(), y.view());
  for (int i = 0; i < 64; ++i) linear<float>(row, weight, View<float>(), out.view());
  adamw.step();
  const std::chrono::duration<double, std::nano> ns = std::chrono::steady_clock::now() - begin;
  const double shortest_sleep = 20'000;
  CHECK(ns.count() >= 2 * operations / 10 + 100 * 10'000 - shortest_sleep);
}

TEST_CASE("messages advance during emulated gradients of weights") {
  const Array<float> x({64, 512}), dy({64, 512});
  Array<float> dweight({512, 512});
  const EmulationScope scope({.operations = 10, .optimizer_ns = 0});
  int calls = 0;
  linear_backward_weight<float>(x, dy, dweight.view(), View<float>(), [&] { ++calls; });
  CHECK(calls >= 1);
}

TEST_CASE("an emulated block exchanges the same messages") {
  for (const int ranks : {1, 2, 4}) {
    std::vector<Traffic> sent[2];
    for (const bool emulated : {false, true}) {
      sent[emulated].resize(static_cast<std::size_t>(ranks));
      support::on_ranks(ranks, [&](Communicator& world) {
        const Mesh mesh(world, {{Axis::tp, ranks}});
        TransformerBlock<float> block({.d_model = 32, .heads = 4, .d_ff = 64}, {1});
        block.parallelize(mesh);
        std::optional<EmulationScope> scope;
        if (emulated) scope.emplace(fast);
        Array<float> x({2, 8, 32});
        Context context;
        static_cast<void>(block.forward_parallel(x, context));
        static_cast<void>(block.backward_parallel(x, context));
        context.expect_finished();
        for (const BudgetLine& line : block.budget({2, 8, 32}))
          sent[emulated][static_cast<std::size_t>(world.rank())] += line.sent;
      });
    }
    for (std::size_t r = 0; r < sent[0].size(); ++r) {
      CHECK(sent[0][r].bytes == sent[1][r].bytes);
      CHECK(sent[0][r].messages == sent[1][r].messages);
    }
  }
}
