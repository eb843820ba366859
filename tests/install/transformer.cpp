// A program of a user of the transformer: exit code 0 if two ways to cut a block agree.
#include <baton/thread.hpp>
#include <baton/transformer/block.hpp>
#include <baton/transformer/training/step.hpp>
#include <cmath>

using namespace baton::transformer;

int main() {
  double losses[2] = {};
  for (const Axis axis : {Axis::tp, Axis::sp}) {
    baton::run_threads(2, [&](std::unique_ptr<baton::Transport> transport) {
      baton::Communicator world(std::move(transport));
      const Mesh mesh(world, {{axis, 2}});
      TransformerBlock<double> block({.d_model = 8, .heads = 2, .d_ff = 16}, {.seed = 1});
      block.parallelize(mesh);
      AdamW<double> adamw(block.parallel().params());
      const auto batch = create_batch<double>(7, {2, 4, 8}, {2, 4, 8});
      for (int step = 0; step < 3; ++step) {
        const double loss = train_step(block.parallel(), share_of(batch, mesh), adamw, mesh).loss;
        if (world.rank() == 0) losses[axis == Axis::sp] = loss;
      }
    });
  }
  return std::abs(losses[0] - losses[1]) <= 1e-12 * losses[0] && losses[0] > 0 ? 0 : 1;
}
