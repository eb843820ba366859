#include "vision.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "../accelerator.hpp"
#include "../instantiation.hpp"
#include "baton/error.hpp"

namespace baton::transformer {
namespace {

template <class T>
ImageBatch<T> batch_of(const Images& data, std::span<const std::int64_t> numbers) {
  return {data.inputs<T>(numbers), data.labels(numbers)};
}

/// The number of rows whose largest element is that of the label.
template <class T>
std::int64_t hits(const Array<T>& logits, const std::vector<std::int32_t>& labels) {
  const Array<T> rows = to_host<T>(logits);
  const std::int64_t classes = rows.extent(1);
  std::int64_t hits = 0;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    const T* const row = rows.data() + static_cast<std::int64_t>(n) * classes;
    const auto less = [](T a, T b) { return widen(a) < widen(b); };
    hits += std::max_element(row, row + classes, less) - row == labels[n] ? 1 : 0;
  }
  return hits;
}

}  // namespace

template <class T>
ImageBatch<T> samples_of(const ImageBatch<T>& batch, const Range& range) {
  return {Array<T>::copy_of(batch.images.view().slice(0, range.begin, range.end)),
          {batch.labels.begin() + range.begin, batch.labels.begin() + range.end}};
}

template <class T>
ImageShare<T> share_of(const ImageBatch<T>& batch, const Mesh& mesh) {
  const std::int64_t samples = batch.samples();
  const Range own = slice_of(samples, mesh.size(Axis::dp), mesh.rank(Axis::dp));
  return {samples_of(batch, own), own.begin, static_cast<double>(samples)};
}

template <class T>
ImageShare<T> share_of_step(const Images& data, const RankData& own, std::int64_t step,
                            const Mesh& mesh) {
  return {batch_of<T>(data, own.partition.samples(step * own.batch, own.batch)),
          own.batch * mesh.rank(Axis::dp), static_cast<double>(own.batch * mesh.size(Axis::dp))};
}

template <class T>
StepLoss train_step(Vgg16<T>& model, DataParallel<T>& replicas, const ImageShare<T>& share,
                    Optimizer<T>& optimizer, const Mesh& mesh, const StepOptions& options) {
  const auto compute = [&](int m, Context& context) {
    const Range range = slice_of(share.batch.samples(), options.micro_batches, m);
    context.first_sample = share.first_sample + range.begin;
    const double loss = options.micro_batches == 1
                            ? model.forward(share.batch, share.samples, context)
                            : model.forward(samples_of(share.batch, range), share.samples, context);
    model.backward(context);
    return loss;
  };
  return train_step(replicas, optimizer, mesh, Axis::dp, MicroBatch(compute), options);
}

template <class T>
Classification evaluate(const std::function<Array<T>(const ImageBatch<T>& images)>& logits_of,
                        const Images& data, std::int64_t samples, std::int64_t batch,
                        const Mesh& mesh, Axes others) {
  if (samples < 1 || samples > data.size() || batch < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("evaluate: expected 1 to {} images in batches of at least 1, found {} "
                            "in batches of {}",
                            data.size(), samples, batch));
  }
  const auto whole = static_cast<double>(samples);
  std::array<double, 2> sums{};  // of the loss, and of the hits
  for (std::int64_t first = 0; first < samples; first += batch) {
    const Range own =
        slice_of(std::min(batch, samples - first), mesh.size(Axis::dp), mesh.rank(Axis::dp));
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(own.size()));
    std::iota(numbers.begin(), numbers.end(), first + own.begin);
    const ImageBatch<T> images = batch_of<T>(data, numbers);
    const Array<T> logits = logits_of(images);
    if (logits.empty()) continue;
    sums[0] += cross_entropy<T>(logits.view(), images.labels_view(), whole, {});
    sums[1] += static_cast<double>(hits(logits, images.labels));
  }
  if (Communicator* const ranks = mesh.along(others)) ranks->all_reduce(std::span(sums), sum);
  return {sums[0], sums[1] / whole};
}

template <class T>
Classification evaluate(Vgg16<T>& model, DataParallel<T>& replicas, const Images& data,
                        std::int64_t samples, std::int64_t batch, const Mesh& mesh) {
  const std::function logits = [&](const ImageBatch<T>& images) {
    Context context;
    replicas.attach(context, false);
    return model.logits(images.images, context);
  };
  return evaluate<T>(logits, data, samples, batch, mesh, Axis::dp);
}

#define BATON_INSTANTIATE(T)                                                                       \
  template BATON_INSTANTIATION ImageBatch<T> samples_of(const ImageBatch<T>&, const Range&);       \
  template BATON_INSTANTIATION ImageShare<T> share_of(const ImageBatch<T>&, const Mesh&);          \
  template BATON_INSTANTIATION ImageShare<T> share_of_step(const Images&, const RankData&,         \
                                                           std::int64_t, const Mesh&);             \
  template BATON_INSTANTIATION StepLoss train_step(Vgg16<T>&, DataParallel<T>&,                    \
                                                   const ImageShare<T>&, Optimizer<T>&,            \
                                                   const Mesh&, const StepOptions&);               \
  template BATON_INSTANTIATION Classification evaluate<T>(                                         \
      const std::function<Array<T>(const ImageBatch<T>&)>&, const Images&, std::int64_t,           \
      std::int64_t, const Mesh&, Axes);                                                            \
  template BATON_INSTANTIATION Classification evaluate(Vgg16<T>&, DataParallel<T>&, const Images&, \
                                                       std::int64_t, std::int64_t, const Mesh&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
