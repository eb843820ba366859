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

template <class T>
std::unique_ptr<Sequential<T>> make_model(const TrainOptions& options) {
  return std::make_unique<SimpleMLP<T>>(2, options.hidden, 1, Random{options.seed});
}

template <class T>
std::unique_ptr<Sequential<T>> make_model(const TrainOptions& options, const Mesh& mesh) {
  auto model = make_model<T>(options);
  replace_to_tp<T>(*model, {{"fc1", Cut::column}, {"fc2", Cut::row}}, mesh);
  return model;
}

#define BATON_INSTANTIATE(T)                                               \
  template Batch<T> make_data(const TrainOptions&);                        \
  template std::unique_ptr<Sequential<T>> make_model(const TrainOptions&); \
  template std::unique_ptr<Sequential<T>> make_model(const TrainOptions&, const Mesh&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
