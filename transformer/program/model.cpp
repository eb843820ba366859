#include "model.hpp"

#include <fmt/core.h>

#include "../training/replace_to_tp.hpp"

namespace baton::transformer::program {

template <class T>
Batch<T> make_data(const TrainOptions& options) {
  if (options.model == ModelKind::mlp)
    return two_moons<T>(options.samples, options.noise, options.seed);
  const Shape shape{options.samples, options.seq, options.block.d_model};
  return create_batch<T>(options.seed, shape, shape);
}

template <class T>
Batch<T> make_validation(const TrainOptions& options) {
  TrainOptions others = options;
  others.samples = options.validation_samples;
  others.seed = Random{options.seed}.of("validation").stream;
  return make_data<T>(others);
}

template <class T>
std::vector<std::shared_ptr<TransformerBlock<T>>> make_blocks(const TrainOptions& options) {
  std::vector<std::shared_ptr<TransformerBlock<T>>> blocks;
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    BlockConfig config = options.block;
    config.name = fmt::format("block{}", layer);
    blocks.push_back(std::make_shared<TransformerBlock<T>>(config, Random{options.seed}));
  }
  return blocks;
}

namespace {

template <class T>
std::unique_ptr<Sequential<T>> mlp(const TrainOptions& options) {
  return std::make_unique<SimpleMLP<T>>(2, options.hidden, 1, Random{options.seed});
}

}  // namespace

template <class T>
std::unique_ptr<Sequential<T>> make_model(const TrainOptions& options) {
  if (options.model == ModelKind::mlp) return mlp<T>(options);
  auto model = std::make_unique<Sequential<T>>();
  for (const auto& block : make_blocks<T>(options)) model->add(block->config().name, block);
  return model;
}

template <class T>
std::unique_ptr<Sequential<T>> make_model(const TrainOptions& options, const Mesh& mesh) {
  if (options.model == ModelKind::mlp) {
    auto model = mlp<T>(options);
    replace_to_tp<T>(*model, {{"fc1", Cut::column}, {"fc2", Cut::row}}, mesh);
    return model;
  }
  auto model = std::make_unique<Sequential<T>>();
  for (const auto& block : make_blocks<T>(options)) {
    block->parallelize(mesh, options.sequence_parallel);
    model->add(block->config().name, std::shared_ptr<Module<T>>(block, &block->parallel()));
  }
  return model;
}

#define BATON_INSTANTIATE(T)                                                                   \
  template Batch<T> make_data(const TrainOptions&);                                            \
  template Batch<T> make_validation(const TrainOptions&);                                      \
  template std::vector<std::shared_ptr<TransformerBlock<T>>> make_blocks(const TrainOptions&); \
  template std::unique_ptr<Sequential<T>> make_model(const TrainOptions&);                     \
  template std::unique_ptr<Sequential<T>> make_model(const TrainOptions&, const Mesh&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer::program
