#include <doctest/doctest.h>

#include "transformer/golden.hpp"
#include "transformer/linear_layers.hpp"
#include "transformer/training/replace_to_tp.hpp"
#include "transformer/training/step.hpp"
#include "transformer/worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

/// The MLP of the golden file, before it is trained.
SimpleMLP<double> golden_mlp(const Golden& golden) {
  SimpleMLP<double> model(4, 8, 3, Random{1});
  model.params()[0]->value = golden("fc2");
  model.params()[1]->value = golden("fc1");
  return model;
}

}  // namespace

TEST_CASE("the MLP's training curve and weights are PyTorch's") {
  const Golden golden("mlp");
  const Batch<double> batch{golden("x"), golden("target")};
  const Array<double> losses = golden("losses");
  REQUIRE(losses.size() == 50);
  on_worlds([&](Communicator& world) {
    const Mesh dp(world, {{Axis::dp, world.size()}}), tp(world, {{Axis::tp, world.size()}});
    const bool divides = 8 % world.size() == 0;
    SimpleMLP<double> shared = golden_mlp(golden), cut = golden_mlp(golden);
    if (divides) replace_to_tp<double>(cut, {{"fc1", Cut::column}, {"fc2", Cut::row}}, tp);
    Sgd<double> of_shared(shared.params(), golden.number("lr")),
        of_cut(cut.params(), golden.number("lr"));
    for (std::int64_t step = 0; step < losses.size(); ++step) {
      CHECK(equal(dp_step(shared, batch, of_shared, dp).loss, losses.data()[step], 1e-12));
      if (divides) CHECK(equal(tp_step(cut, batch, of_cut, tp).loss, losses.data()[step], 1e-12));
    }
    CHECK(equal(shared.params()[0]->value, golden("fc2.trained")));
    CHECK(equal(shared.params()[1]->value, golden("fc1.trained")));
    if (!divides) return;
    CHECK(equal(whole_value(*cut.params()[0], tp), golden("fc2.trained")));
    CHECK(equal(whole_value(*cut.params()[1], tp), golden("fc1.trained")));
  });
}

TEST_CASE("AdamW's steps are PyTorch's") {
  const Golden golden("adamw");
  Param<double> param("w", golden("start"));
  AdamW<double> adamw({&param}, {.learning_rate = golden.number("lr"),
                                 .beta1 = golden.number("beta1"),
                                 .beta2 = golden.number("beta2"),
                                 .epsilon = golden.number("epsilon"),
                                 .weight_decay = golden.number("weight_decay")});
  const Array<double> gradients = golden("gradients"), values = golden("values");
  REQUIRE(gradients.extent(0) == 10);
  for (std::int64_t step = 0; step < 10; ++step) {
    assign<double>(gradients.view().select(0, step), param.grad.view());
    adamw.step();
    CHECK(equal(param.value, Array<double>::copy_of(values.view().select(0, step)), 1e-14));
  }
}
