#pragma once
/// GPT-2, VGG16 and layers in a row as pipelines.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "../models/language.hpp"
#include "../models/vision.hpp"
#include "runner.hpp"
#include "stages.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// A model whose parts are the stages of a schedule: this rank's parts, and their pipeline.
template <class T, class Part, class ItsStage>
class PipelinedModel {
 public:
  /// `make(layers)` makes a part of the model, `layers` says those of each stage. Collective over
  /// the mesh, which must outlive it. Throws like Pipeline, and whatever `make` throws.
  PipelinedModel(const PipelineSchedule& schedule, const std::vector<Range>& layers,
                 const Mesh& mesh, const std::function<std::unique_ptr<Part>(Range layers)>& make) {
    const std::vector<int> places = ranks_of_stages(schedule);
    std::map<int, PipelineStage<T>*> own;
    for (int s = 0; s < schedule.stages; ++s) {
      if (places[static_cast<std::size_t>(s)] != mesh.rank(Axis::pp)) continue;
      parts_.push_back(make(layers.at(static_cast<std::size_t>(s))));
      stages_.emplace_back(*parts_.back());
      own[s] = &stages_.back();
    }
    pipeline_ = std::make_unique<Pipeline<T>>(schedule, own, mesh);
  }
  /// The next micro-batches are near-equal slices of `share`. Throws as the stages do.
  template <class Share>
  void start(const Share& share, int micro_batches) {
    for (ItsStage& stage : stages_) stage.start(share, micro_batches);
  }
  /// The stages as one model.
  Pipeline<T>& pipeline() { return *pipeline_; }
  /// The parts that lie on this rank.
  const std::vector<std::unique_ptr<Part>>& parts() const { return parts_; }

 private:
  std::vector<std::unique_ptr<Part>> parts_;
  std::deque<ItsStage> stages_;
  std::unique_ptr<Pipeline<T>> pipeline_;
};

/// A GPT-2 in a pipeline; its layers are its blocks.
template <class T>
using PipelinedGpt2 = PipelinedModel<T, Gpt2<T>, Gpt2Stage<T>>;
/// A VGG16 in a pipeline.
template <class T>
using PipelinedVgg16 = PipelinedModel<T, Vgg16<T>, Vgg16Stage<T>>;
/// Layers in a row in a pipeline.
template <class T>
using PipelinedLayers = PipelinedModel<T, LayersPart<T>, LayersStage<T>>;

/// Makes one step as train_step() of the whole model does; `share` is the same on the ranks of a
/// pipeline. Throws like it, and like Pipeline::run().
template <class T>
StepLoss train_step(PipelinedGpt2<T>& model, DataParallel<T>& replicas, const TokenShare& share,
                    Optimizer<T>& optimizer, const Mesh& mesh, const StepOptions& options = {});
/// Likewise.
template <class T>
StepLoss train_step(PipelinedVgg16<T>& model, DataParallel<T>& replicas, const ImageShare<T>& share,
                    Optimizer<T>& optimizer, const Mesh& mesh, const StepOptions& options = {});

/// Likewise. The output is on the rank of the last stage, and empty on others.
template <class T>
StepResult<T> train_step(PipelinedLayers<T>& model, DataParallel<T>& replicas,
                         const Share<T>& share, Optimizer<T>& optimizer, const Mesh& mesh,
                         const StepOptions& options = {});

/// evaluate() of a whole model (language.hpp).
template <class T>
double evaluate(PipelinedGpt2<T>& model, DataParallel<T>& replicas, const Sequences& data,
                std::int64_t samples, std::int64_t batch, const Mesh& mesh);
/// evaluate() of a whole model (vision.hpp).
template <class T>
Classification evaluate(PipelinedVgg16<T>& model, DataParallel<T>& replicas, const Images& data,
                        std::int64_t samples, std::int64_t batch, const Mesh& mesh);

/// evaluate() of layers in a row (step.hpp).
template <class T>
double evaluate(PipelinedLayers<T>& model, DataParallel<T>& replicas, const Share<T>& share,
                const Mesh& mesh);

/// On all ranks of a pipeline, the array that the rank of the last stage has; `shape` is its shape.
/// Collective over axis pp.
template <class T>
Array<T> from_last_stage(Pipeline<T>& pipeline, const Array<T>& array, const Shape& shape,
                         const Mesh& mesh);

/// The logits of ids [b, s], [b, s, vocabulary], as Gpt2::logits().
template <class T>
Array<T> logits(PipelinedGpt2<T>& model, DataParallel<T>& replicas, View<const std::int32_t> ids,
                const Mesh& mesh);
/// The logits of images [n, 3, h, w], [n, classes], as Vgg16::logits(); the same images on every
/// rank of a pipeline.
template <class T>
Array<T> logits(PipelinedVgg16<T>& model, DataParallel<T>& replicas, const Array<T>& images,
                const Mesh& mesh);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
