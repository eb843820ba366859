#include "budget.hpp"

#include <doctest/doctest.h>

#include "equivalence.hpp"
#include "transformer/training/step.hpp"

namespace support {

using namespace baton;
using namespace baton::transformer;

namespace {

Traffic of_lines(const std::vector<BudgetLine>& lines, bool backward) {
  Traffic sum;
  for (const BudgetLine& line : lines)
    if (line.backward == backward) sum += line.sent;
  return sum;
}

}  // namespace

void check_budget(Communicator& world, const std::function<Traffic()>& sent) {
  const auto sent_in = [&](const auto& body) {
    const Traffic before = sent();
    body();
    const Traffic after = sent();
    return Traffic{after.messages - before.messages, after.bytes - before.bytes};
  };
  for (const BlockCase& c : cases_for(world.size())) {
    CAPTURE(text(c));
    const Mesh mesh(world, {{Axis::dp, c.dp}, {Axis::sp, c.sp}, {Axis::tp, c.tp}});
    TransformerBlock<float> block(c.config, {1});
    block.parallelize(mesh, c.sequence_parallel);
    const Shape shape{c.batch / c.dp, c.seq / block.parallel_form().parts, c.config.d_model};
    Array<float> x(shape);
    Context context;
    const auto lines = block.budget(shape);
    CHECK(sent_in([&] { block.forward_parallel(x, context); }) == of_lines(lines, false));
    CHECK(sent_in([&] { block.backward_parallel(x, context); }) == of_lines(lines, true));
    GradientBuckets<float> buckets(block.parallel().params(), mesh, 4096);
    CHECK(sent_in([&] { buckets.finish(); }) == buckets.traffic());

    Sgd<float> sgd(block.parallel().params(), 0.1);
    const Shape whole{c.batch, c.seq, c.config.d_model};
    const auto share = share_of(create_batch<float>(1, whole, whole), mesh, c.sequence_parallel);
    double loss = 0;
    const Data one(&loss, 1, Datatype::f64);
    Traffic step = of_lines(lines, false);
    step += of_lines(lines, true);
    step += GradientBuckets<float>(block.parallel().params(), mesh).traffic();
    if (Communicator* const ranks = mesh.along(all_axes))
      step += ranks->traffic(calls::all_reduce(one, one, sum));
    CHECK(sent_in([&] { train_step(block.parallel(), share, sgd, mesh); }) == step);
  }
}

}  // namespace support
