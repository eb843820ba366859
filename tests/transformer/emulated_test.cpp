// Computations that take time and compute nothing. Of times, only lower bounds are asserted.

#include "transformer/emulated.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <tuple>
#include <vector>

#include "baton/timeline.hpp"
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
  std::ranges::fill(x.span(), -1.0f);
  std::ranges::fill(weight.span(), 2.0f);
  std::ranges::fill(y.span(), 7.0f);
  CHECK(!emulates());
  {
    const EmulationScope scope(fast);
    CHECK(emulates());
    linear<float>(x, weight, View<float>(), y.view());
    activate<float>(Activation::relu, x, x.view());
    Dropout{.p = 0.5, .random = {1}, .piece = {x.shape()}}.apply(x.view());
    CHECK(cross_entropy<float>(std::as_const(y).view(), View<const std::int32_t>(nullptr, {4}), 1,
                               {}) == 0);
  }
  CHECK(!emulates());
  CHECK(std::ranges::all_of(y.span(), [](float value) { return value == 7; }));
  CHECK(std::ranges::all_of(x.span(), [](float value) { return value == -1; }));
  linear<float>(x, weight, View<float>(), y.view());
  CHECK(std::ranges::all_of(y.span(), [](float value) { return value == -16; }));
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

TEST_CASE("an emulated block sends the same messages") {
  using Sent = std::vector<std::tuple<int, int, std::int64_t>>;  // from, to, bytes
  for (const int ranks : {1, 2, 4}) {
    Sent sent[2];
    for (const bool emulated : {false, true}) {
      support::on_ranks(ranks, [&](Communicator& world) {
        world.start_recording();
        const Mesh mesh(world, {{Axis::tp, ranks}});
        TransformerBlock<float> block({.d_model = 32, .heads = 4, .d_ff = 64}, {1});
        block.parallelize(mesh);
        std::optional<EmulationScope> scope;
        if (emulated) scope.emplace(fast);
        const Array<float> x({2, 8, 32});
        Context context;
        static_cast<void>(block.forward_parallel(x, context));
        static_cast<void>(block.backward_parallel(x, context));
        context.expect_finished();
        const Timeline timeline = world.stop_recording();
        if (world.rank() != 0) return;
        for (const Event& event : timeline.events)
          if (event.kind == StepKind::send)
            sent[emulated].emplace_back(event.rank, event.peer, event.bytes);
      });
      std::ranges::sort(sent[emulated]);
    }
    CHECK(sent[false] == sent[true]);
    CHECK(sent[true].empty() == (ranks == 1));
  }
}
