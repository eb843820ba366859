#include <doctest/doctest.h>

#include "transformer/block.hpp"
#include "transformer/training/step.hpp"
#include "transformer/worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

BlockConfig config() {
  BlockConfig config;
  config.heads = 8, config.d_model = 16, config.d_ff = 24;
  config.activation = Activation::gelu;
  config.causal = true;
  config.hidden_dropout = 0.1, config.attention_dropout = 0.1;
  return config;
}

struct Layout {
  std::vector<std::pair<Axis, int>> axes;
  bool sequence_parallel = false;
};

/// All ways to use this many ranks along one axis, or along two; where they do not divide the
/// heads, along the samples, of which some then have more.
std::vector<Layout> layouts_of(int ranks) {
  if (config().heads % ranks != 0) return {{{{Axis::dp, ranks}}}};
  std::vector<Layout> layouts{{{{Axis::dp, ranks}}},
                              {{{Axis::tp, ranks}}},
                              {{{Axis::tp, ranks}}, true},
                              {{{Axis::sp, ranks}}}};
  if (ranks % 2 == 0 && ranks > 2) {
    layouts.push_back({{{Axis::sp, 2}, {Axis::tp, ranks / 2}}});
    layouts.push_back({{{Axis::sp, ranks / 2}, {Axis::tp, 2}}, true});
    layouts.push_back({{{Axis::dp, 2}, {Axis::tp, ranks / 2}}});
  }
  return layouts;
}

}  // namespace

TEST_CASE("losses over 50 steps of a block are those of one rank, in every layout") {
  constexpr int steps = 50;
  const Shape shape{8, 8, config().d_model};
  const auto batch = create_batch<double>(3, shape, shape);
  const auto options = [](int step) {
    StepOptions options;
    options.random = Random{17}.of(static_cast<std::uint64_t>(step));
    options.bucket_bytes = 4096;
    return options;
  };
  std::vector<double> expected;
  TransformerBlock<double> reference(config(), {5});
  AdamW<double> adamw(reference.params(), {.learning_rate = 1e-2});
  for (int step = 0; step < steps; ++step) {
    expected.push_back(train_step(reference, whole_of(batch), adamw, Mesh(), options(step)).loss);
  }
  CHECK(expected.back() < 0.9 * expected.front());
  on_worlds([&](Communicator& world) {
    for (const Layout& layout : layouts_of(world.size())) {
      const Mesh mesh(world, layout.axes);
      TransformerBlock<double> block(config(), {5});
      block.parallelize(mesh, layout.sequence_parallel);
      Module<double>& model = block.parallel();
      AdamW<double> own(model.params(), {.learning_rate = 1e-2});
      const auto share = share_of(batch, mesh, layout.sequence_parallel);
      for (int step = 0; step < steps; ++step) {
        CAPTURE(step);
        const double loss = train_step(model, share, own, mesh, options(step)).loss;
        CHECK(equal(loss, expected[static_cast<std::size_t>(step)], 1e-10));
      }
    }
  });
}
