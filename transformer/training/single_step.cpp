#include "single_step.hpp"

#include "../instantiation.hpp"
#include "replace_to_tp.hpp"
#include "step.hpp"

namespace baton::transformer {
namespace {

template <class T>
SingleStep<T> stepped(Sequential<T>& model, const Share<T>& share, double learning_rate,
                      const Mesh& mesh) {
  Sgd<T> optimizer(model.params(), learning_rate);
  SingleStep<T> result{train_step(model, share, optimizer, mesh).loss, {}};
  for (const Param<T>* param : model.params())
    result.weights.push_back({param->name, whole_value(*param, mesh)});
  return result;
}

template <class T>
SimpleMLP<T> mlp(const MlpConfig& config, std::uint64_t seed) {
  return {config.in, config.hidden, config.out, Random{seed}};
}

}  // namespace

template <class T>
SingleStep<T> single_step(const MlpConfig& config, std::uint64_t seed, const Batch<T>& batch,
                          double learning_rate) {
  auto model = mlp<T>(config, seed);
  return stepped<T>(model, whole_of(batch), learning_rate, Mesh());
}

template <class T>
SingleStep<T> data_parallel_single_step(const MlpConfig& config, std::uint64_t seed,
                                        const Batch<T>& batch, double learning_rate,
                                        Communicator& world) {
  const Mesh mesh(world, {{Axis::dp, world.size()}});
  auto model = mlp<T>(config, seed);
  return stepped<T>(model, share_of(batch, mesh), learning_rate, mesh);
}

template <class T>
SingleStep<T> full_column_parallel_single_step(const MlpConfig& config, std::uint64_t seed,
                                               const Batch<T>& batch, double learning_rate,
                                               Communicator& world) {
  const Mesh mesh(world, {{Axis::tp, world.size()}});
  auto model = mlp<T>(config, seed);
  replace_to_tp<T>(model, {{"fc1", Cut::column}, {"fc2", Cut::column}}, mesh);
  return stepped<T>(model, whole_of(batch), learning_rate, mesh);
}

#define BATON_INSTANTIATE(T)                                                              \
  template BATON_INSTANTIATION SingleStep<T> single_step(const MlpConfig&, std::uint64_t, \
                                                         const Batch<T>&, double);        \
  template BATON_INSTANTIATION SingleStep<T> data_parallel_single_step(                   \
      const MlpConfig&, std::uint64_t, const Batch<T>&, double, Communicator&);           \
  template BATON_INSTANTIATION SingleStep<T> full_column_parallel_single_step(            \
      const MlpConfig&, std::uint64_t, const Batch<T>&, double, Communicator&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
