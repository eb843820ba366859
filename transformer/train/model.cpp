#include "model.hpp"

#include <fmt/format.h>

#include "../training/replace_to_tp.hpp"

namespace baton::transformer {

template <class T>
Batch<T> make_data(const TrainOptions& options) {
  if (options.model == Model::mlp)
    return two_moons<T>(options.samples, options.noise, options.seed);
  const Shape shape{options.samples, options.seq, options.block.d_model};
  return create_batch<T>(options.seed, shape, shape);
}

namespace {

/// A block in its parallel form.
template <class T>
class ParallelBlock final : public Module<T> {
 public:
  ParallelBlock(const BlockConfig& config, const Random& random, const Mesh& mesh,
                bool sequence_parallel)
      : block_(config, random) {
    block_.parallelize(mesh, sequence_parallel);
  }
  Array<T> forward(const Array<T>& x, Context& context) override {
    return block_.forward_parallel(x, context);
  }
  Array<T> backward(const Array<T>& dy, Context& context) override {
    return block_.backward_parallel(dy, context);
  }
  Params<T> params() override { return block_.parallel().params(); }

 private:
  TransformerBlock<T> block_;
};

/// Blocks in a row, each made by make(config, random).
template <class T>
std::unique_ptr<Sequential<T>> blocks(const TrainOptions& options, const auto& make) {
  auto model = std::make_unique<Sequential<T>>();
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    BlockConfig config = options.block;
    config.name = fmt::format("block{}", layer);
    model->add(config.name, make(config, Random{options.seed}));
  }
  return model;
}

template <class T>
std::unique_ptr<Sequential<T>> mlp(const TrainOptions& options) {
  return std::make_unique<SimpleMLP<T>>(2, options.hidden, 1, Random{options.seed});
}

}  // namespace

template <class T>
std::unique_ptr<Sequential<T>> make_model(const TrainOptions& options) {
  if (options.model == Model::mlp) return mlp<T>(options);
  return blocks<T>(options, [](const BlockConfig& config, const Random& random) {
    return std::make_unique<TransformerBlock<T>>(config, random);
  });
}

template <class T>
std::unique_ptr<Sequential<T>> make_model(const TrainOptions& options, const Mesh& mesh) {
  if (options.model == Model::mlp) {
    auto model = mlp<T>(options);
    replace_to_tp<T>(*model, {{"fc1", Cut::column}, {"fc2", Cut::row}}, mesh);
    return model;
  }
  return blocks<T>(options, [&](const BlockConfig& config, const Random& random) {
    return std::make_unique<ParallelBlock<T>>(config, random, mesh, options.sequence_parallel);
  });
}

#define BATON_INSTANTIATE(T)                                               \
  template Batch<T> make_data(const TrainOptions&);                        \
  template std::unique_ptr<Sequential<T>> make_model(const TrainOptions&); \
  template std::unique_ptr<Sequential<T>> make_model(const TrainOptions&, const Mesh&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
