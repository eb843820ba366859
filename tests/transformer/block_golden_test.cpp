#include <doctest/doctest.h>
#include <fmt/core.h>

#include "golden.hpp"
#include "transformer/block.hpp"
#include "worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

TEST_CASE("the block's outputs and gradients are PyTorch's, in every form") {
  for (const Activation activation : activations) {
    for (const std::string mask : {"full", "causal"}) {
      const Golden golden(fmt::format("block_{}_{}", name(activation), mask));
      on_worlds([&](Communicator& world) {
        const int ranks = world.size();
        if (int(golden.number("heads")) % ranks != 0) return;
        const Array<double> x = golden("x"), y = golden("y"), dy = golden("y.grad");
        for (const bool cut_weights : {false, true}) {
          for (const bool sequence_parallel : {false, true}) {
            if (sequence_parallel && !cut_weights) continue;
            BlockConfig config;
            config.d_model = x.extent(2), config.heads = std::int64_t(golden.number("heads"));
            config.d_ff = golden("fc1").extent(0);
            config.causal = golden.number("causal") != 0;
            config.activation = activation;
            config.attention_bias = golden.number("attention_bias") != 0;
            TransformerBlock<double> block(config, {1});
            for (Param<double>* param : block.params())
              param->value = golden(param->name.substr(6));  // behind "block."
            const Mesh mesh(world, {{cut_weights ? Axis::tp : Axis::sp, ranks}});
            block.parallelize(mesh, sequence_parallel);
            const bool whole = cut_weights && !sequence_parallel;
            const auto own = [&](const Array<double>& a) {
              return whole ? a.copy() : part_along<double>(a, 1, world.rank(), ranks);
            };
            Context context;
            CHECK(equal(block.forward_parallel(own(x), context), own(y)));
            CHECK(equal(block.backward_parallel(own(dy), context), own(golden("x.grad"))));
            const Params<double> found = block.parallel().params(), names = block.params();
            sync_grads(found, mesh);
            for (std::size_t p = 0; p < found.size(); ++p) {
              CAPTURE(names[p]->name);
              Array<double> grad = whole_grad(*found[p], mesh),
                            expected = golden(names[p]->name.substr(6) + ".grad");
              if (names[p] == &block.k_proj_bias) {  // 0 but for rounding, so compared beside 1
                for (double& value : grad.span()) value += 1;
                for (double& value : expected.span()) value += 1;
              }
              CHECK(equal(grad, expected));
            }
          }
        }
      });
    }
  }
}
