#include "budget.hpp"

#include <doctest/doctest.h>

#include "equivalence.hpp"
#include "support/counting.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

TEST_CASE("what is sent is what the budget says") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    CAPTURE(ranks);
    run_threads(ranks, [](std::unique_ptr<Transport> transport) {
      Traffic sent;
      Communicator world(std::make_unique<CountingTransport>(std::move(transport), sent),
                         test_options());
      check_budget(world, [&] { return sent; });
    });
  }
}

TEST_CASE("with algorithms that send no byte twice, the budget is the formula") {
  // A: bytes of an activation [b, s, d]; c = (P - 1) / P.
  const int ranks = 4;
  Options options = test_options();
  const auto choose = [&](Collective collective, const char* algorithm) {
    options.choices[static_cast<std::size_t>(collective)] = {algorithm, 0};
  };
  choose(Collective::all_reduce, "ring");
  choose(Collective::all_gather, "ring");
  choose(Collective::reduce_scatter, "ring");
  choose(Collective::all_to_all, "pairwise");
  BlockConfig config;
  config.heads = 8, config.d_model = 32, config.d_ff = 64;
  const std::int64_t batch = 3, seq = 8, whole = batch * seq * config.d_model * 4;
  on_ranks(
      ranks,
      [&](Communicator& world) {
        const auto bytes = [&](Axis axis, bool sequence_parallel, bool backward) {
          const Mesh mesh(world, {{axis, ranks}});
          TransformerBlock<float> block(config, {1});
          block.parallelize(mesh, sequence_parallel);
          std::int64_t sum = 0;
          for (const BudgetLine& line :
               block.budget({batch, seq / block.parallel_form().parts, config.d_model}))
            if (line.backward == backward) sum += line.sent.bytes;
          return sum;
        };
        for (const bool backward : {false, true}) {
          CHECK(bytes(Axis::tp, false, backward) == 4 * whole * (ranks - 1) / ranks);
          CHECK(bytes(Axis::tp, true, backward) == 4 * whole * (ranks - 1) / ranks);
          CHECK(bytes(Axis::sp, false, backward) == 4 * whole * (ranks - 1) / ranks / ranks);
          CHECK(bytes(Axis::dp, false, backward) == 0);
        }
        const Mesh mesh(world, {{Axis::dp, ranks}});
        TransformerBlock<float> block(config, {1});
        block.parallelize(mesh);
        std::int64_t elements = 0;
        for (const Param<float>* param : block.params()) elements += param->value.size();
        const Traffic sent = GradientBuckets<float>(block.params(), mesh, 1 << 30).traffic();
        CHECK(elements % ranks == 0);
        CHECK(sent.bytes == 2 * (ranks - 1) * elements / ranks * 4);
      },
      options);
}
