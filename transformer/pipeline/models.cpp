#include "models.hpp"

#include <algorithm>

#include "../exchange.hpp"
#include "../instantiation.hpp"

namespace baton::transformer {
namespace {

/// At most as many micro-batches as the schedule has, each with a sample on every rank, but at
/// least one; the same on all ranks.
template <class Model>
int micro_batches(Model& model, std::int64_t samples, const Mesh& mesh) {
  if (Communicator* const ranks = mesh.along(Axis::dp))
    ranks->all_reduce(std::span(&samples, 1), min);
  const int most = model.pipeline().schedule().micro_batches;
  return static_cast<int>(std::clamp<std::int64_t>(samples, 1, most));
}

}  // namespace

template <class T>
Array<T> from_last_stage(Pipeline<T>& pipeline, const Array<T>& array, const Shape& shape,
                         const Mesh& mesh) {
  Communicator* const ranks = mesh.along(Axis::pp);
  if (!ranks) return array;
  const int last = pipeline.rank_of(pipeline.schedule().stages - 1);
  Array<T> all = ranks->rank() == last ? array : Array<T>::uninitialized(shape);
  ranks->broadcast(Data(all.span()), last);
  return all;
}

template <class T>
StepLoss train_step(PipelinedGpt2<T>& model, DataParallel<T>& replicas, const TokenShare& share,
                    Optimizer<T>& optimizer, const Mesh& mesh, const StepOptions& options) {
  model.start(share, model.pipeline().schedule().micro_batches);
  return train_step(model.pipeline(), replicas, optimizer, mesh, Axis::dp | Axis::sp, options);
}

template <class T>
StepLoss train_step(PipelinedVgg16<T>& model, DataParallel<T>& replicas, const ImageShare<T>& share,
                    Optimizer<T>& optimizer, const Mesh& mesh, const StepOptions& options) {
  model.start(share, model.pipeline().schedule().micro_batches);
  return train_step(model.pipeline(), replicas, optimizer, mesh, Axis::dp, options);
}

template <class T>
StepResult<T> train_step(PipelinedLayers<T>& model, DataParallel<T>& replicas,
                         const Share<T>& share, Optimizer<T>& optimizer, const Mesh& mesh,
                         const StepOptions& options) {
  const int parts = model.pipeline().schedule().micro_batches;
  model.start(share, parts);
  std::vector<Array<T>> outputs(static_cast<std::size_t>(parts));
  const auto keep = [&](int micro_batch, const Array<T>& output) {
    outputs[static_cast<std::size_t>(micro_batch)] = output;
  };
  StepResult<T> result{
      train_step(model.pipeline(), replicas, optimizer, mesh, share.others, options, keep), {}};
  const Pipeline<T>& pipeline = model.pipeline();
  if (pipeline.rank_of(pipeline.schedule().stages - 1) == mesh.rank(Axis::pp))
    result.output = joined_samples(outputs);
  return result;
}

template <class T>
double evaluate(PipelinedGpt2<T>& model, DataParallel<T>& replicas, const Sequences& data,
                std::int64_t samples, std::int64_t batch, const Mesh& mesh) {
  const auto loss = [&](const TokenShare& share) {
    const int parts = micro_batches(model, share.batch.shape[0], mesh);
    model.start(share, parts);
    return model.pipeline().forward(replicas, parts);
  };
  return evaluate(loss, data, samples, batch, mesh, Axis::dp | Axis::sp | Axis::pp);
}

template <class T>
Classification evaluate(PipelinedVgg16<T>& model, DataParallel<T>& replicas, const Images& data,
                        std::int64_t samples, std::int64_t batch, const Mesh& mesh) {
  const std::function logits_of = [&](const ImageBatch<T>& images) {
    model.start(ImageShare<T>{images, 0, static_cast<double>(images.samples())}, 1);
    Array<T> all;
    model.pipeline().forward(replicas, 1, [&](int, const Array<T>& output) { all = output; });
    return all;
  };
  return evaluate<T>(logits_of, data, samples, batch, mesh, Axis::dp | Axis::pp);
}

template <class T>
double evaluate(PipelinedLayers<T>& model, DataParallel<T>& replicas, const Share<T>& share,
                const Mesh& mesh) {
  const int parts = micro_batches(model, share.batch.samples(), mesh);
  model.start(share, parts);
  double loss = model.pipeline().forward(replicas, parts);
  if (Communicator* const ranks = mesh.along(share.others | Axis::pp))
    ranks->all_reduce(std::span(&loss, 1), sum);
  return loss;
}

template <class T>
Array<T> logits(PipelinedGpt2<T>& model, DataParallel<T>& replicas, View<const std::int32_t> ids,
                const Mesh& mesh) {
  Pipeline<T>& pipeline = model.pipeline();
  TokenShare share;
  if (!model.parts().empty()) share.batch = model.parts().front()->own_positions(ids);
  share.tokens = 1;  // of a loss that nobody reads
  model.start(share, 1);
  Array<T> part;
  pipeline.forward(replicas, 1, [&](int, const Array<T>& output) { part = output; });
  Shape shape{ids.extent(0), ids.extent(1), 0};
  if (!part.empty()) {
    const Shape own = share.batch.shape;
    part = part.reshaped({own[0], own[1], part.extent(1)});
    part = model.parts().back()->joined_logits(std::move(part), ids.extent(1));
    shape = part.shape();
  }
  std::int64_t vocabulary = shape[2];
  if (Communicator* const ranks = mesh.along(Axis::pp))
    ranks->all_reduce(std::span(&vocabulary, 1), max);
  return from_last_stage(pipeline, part, shape.with(2, vocabulary), mesh);
}

template <class T>
Array<T> logits(PipelinedVgg16<T>& model, DataParallel<T>& replicas, const Array<T>& images,
                const Mesh& mesh) {
  Pipeline<T>& pipeline = model.pipeline();
  ImageShare<T> share;
  share.batch.images = images;
  share.batch.labels.resize(static_cast<std::size_t>(images.extent(0)));
  share.samples = 1;  // of a loss that nobody reads
  model.start(share, 1);
  Array<T> all;
  pipeline.forward(replicas, 1, [&](int, const Array<T>& output) { all = output; });
  std::int64_t classes = all.empty() ? 0 : all.extent(1);
  if (Communicator* const ranks = mesh.along(Axis::pp))
    ranks->all_reduce(std::span(&classes, 1), max);
  return from_last_stage(pipeline, all, {images.extent(0), classes}, mesh);
}

#define BATON_INSTANTIATE(T)                                                                      \
  template BATON_INSTANTIATION StepLoss train_step(PipelinedGpt2<T>&, DataParallel<T>&,           \
                                                   const TokenShare&, Optimizer<T>&, const Mesh&, \
                                                   const StepOptions&);                           \
  template BATON_INSTANTIATION StepLoss train_step(PipelinedVgg16<T>&, DataParallel<T>&,          \
                                                   const ImageShare<T>&, Optimizer<T>&,           \
                                                   const Mesh&, const StepOptions&);              \
  template BATON_INSTANTIATION StepResult<T> train_step(PipelinedLayers<T>&, DataParallel<T>&,    \
                                                        const Share<T>&, Optimizer<T>&,           \
                                                        const Mesh&, const StepOptions&);         \
  template BATON_INSTANTIATION double evaluate(PipelinedLayers<T>&, DataParallel<T>&,             \
                                               const Share<T>&, const Mesh&);                     \
  template BATON_INSTANTIATION Array<T> from_last_stage(Pipeline<T>&, const Array<T>&,            \
                                                        const Shape&, const Mesh&);               \
  template BATON_INSTANTIATION double evaluate(PipelinedGpt2<T>&, DataParallel<T>&,               \
                                               const Sequences&, std::int64_t, std::int64_t,      \
                                               const Mesh&);                                      \
  template BATON_INSTANTIATION Classification evaluate(PipelinedVgg16<T>&, DataParallel<T>&,      \
                                                       const Images&, std::int64_t, std::int64_t, \
                                                       const Mesh&);                              \
  template BATON_INSTANTIATION Array<T> logits(PipelinedGpt2<T>&, DataParallel<T>&,               \
                                               View<const std::int32_t>, const Mesh&);            \
  template BATON_INSTANTIATION Array<T> logits(PipelinedVgg16<T>&, DataParallel<T>&,              \
                                               const Array<T>&, const Mesh&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
