#pragma once
/// Training and evaluation of a model that classifies images.

#include <cstdint>
#include <functional>

#include "../data/images.hpp"
#include "../data/partition.hpp"
#include "../optimizer.hpp"
#include "../training/data_parallel.hpp"
#include "../training/step.hpp"
#include "vgg16.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// The images of a range, copied.
template <class T>
ImageBatch<T> samples_of(const ImageBatch<T>& batch, const Range& range);

/// This rank's part of a batch of images.
template <class T>
struct ImageShare {
  ImageBatch<T> batch;
  std::int64_t first_sample = 0;  ///< index in the whole batch
  double samples = 0;             ///< of the whole batch
};
/// Axis dp cuts the images into near-equal slices; a rank may have none.
template <class T>
ImageShare<T> share_of(const ImageBatch<T>& batch, const Mesh& mesh);
/// That of step `step` of an epoch (partition_dataset()).
template <class T>
ImageShare<T> share_of_step(const Images& data, const RankData& own, std::int64_t step,
                            const Mesh& mesh);

/// Makes one step with the mean cross-entropy of all images as the loss. Every rank makes
/// options.micro_batches, of near-equal slices of its images. Collective over the mesh.
template <class T>
StepLoss train_step(Vgg16<T>& model, DataParallel<T>& replicas, const ImageShare<T>& share,
                    Optimizer<T>& optimizer, const Mesh& mesh, const StepOptions& options = {});

/// How well a model knows images.
struct Classification {
  double loss = 0;      ///< mean cross-entropy
  double accuracy = 0;  ///< the part of the images whose label has the largest logit
};
/// That of the first `samples` images, `batch` at once, without dropout; the same on every rank.
/// Collective over the mesh. Throws Error(invalid_argument) unless there are so many images, and at
/// least one.
template <class T>
Classification evaluate(Vgg16<T>& model, DataParallel<T>& replicas, const Images& data,
                        std::int64_t samples, std::int64_t batch, const Mesh& mesh);
/// The same of a model of which `logits` computes [n, classes] for a rank's images; empty: another
/// rank along `others` has them.
template <class T>
Classification evaluate(const std::function<Array<T>(const ImageBatch<T>& images)>& logits,
                        const Images& data, std::int64_t samples, std::int64_t batch,
                        const Mesh& mesh, Axes others);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
