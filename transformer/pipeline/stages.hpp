#pragma once
/// Parts of models as stages of a pipeline.

#include <vector>

#include "../models/language.hpp"
#include "../models/vision.hpp"
#include "../training/sequential.hpp"
#include "baton/export.hpp"
#include "stage.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// A part of a GPT-2 as a stage. Where it is cut along axes tp and sp, so are the activations
/// between stages.
template <class T>
class Gpt2Stage final : public PipelineStage<T> {
 public:
  /// The part must outlive it.
  explicit Gpt2Stage(Gpt2<T>& part) : part_(part) {}
  /// The next micro-batches are near-equal slices of `share`, the same on every stage. Throws
  /// Error(invalid_argument) unless there is at least one sample for each; one micro-batch may be
  /// empty.
  void start(const TokenShare& share, int micro_batches);

  Params<T> params() override { return part_.params(); }
  std::vector<Unit<T>> units() override { return part_.units(); }
  Params<T> shared() override;
  Shape input(int micro_batch) const override;
  Shape output(int micro_batch) const override;
  StageOutput<T> forward(int micro_batch, Array<T> x, Context& context) override;
  Array<T> backward(Array<T> dy, Context& context) override;

 private:
  Shape ids(int micro_batch) const;
  Gpt2<T>& part_;
  TokenShare share_;
  int micro_batches_ = 1;
};

/// A part of a VGG16 as a stage.
template <class T>
class Vgg16Stage final : public PipelineStage<T> {
 public:
  /// The part must outlive it.
  explicit Vgg16Stage(Vgg16<T>& part) : part_(part) {}
  /// The next micro-batches are near-equal slices of `share`, the same on every stage. Throws
  /// Error(invalid_argument) if there is no micro-batch.
  void start(const ImageShare<T>& share, int micro_batches);

  Params<T> params() override { return part_.params(); }
  std::vector<Unit<T>> units() override { return part_.units(); }
  Shape input(int micro_batch) const override;
  Shape output(int micro_batch) const override;
  StageOutput<T> forward(int micro_batch, Array<T> x, Context& context) override;
  Array<T> backward(Array<T> dy, Context& context) override;

 private:
  Shape images(int micro_batch) const;
  Vgg16<T>& part_;
  ImageShare<T> share_;
  int micro_batches_ = 1;
};

/// Some layers of a row, with the shapes of the activations that they take and give, for any number
/// of samples in the first dimension. Shapes have no dimensions at the ends of the row.
template <class T>
struct LayersPart final : Sequential<T> {
  Shape input, output;
};

/// Some layers of a row as a stage. The loss of the last one is the mean squared error.
template <class T>
class LayersStage final : public PipelineStage<T> {
 public:
  /// The layers must outlive it. `input` and `output` are shapes of the activations that it takes
  /// and gives, for any number of samples in the first dimension; without dimensions for the first
  /// stage's input and the last one's output.
  LayersStage(Module<T>& layers, const Shape& input, const Shape& output)
      : layers_(layers), input_(input), output_(output) {}
  /// The part must outlive it.
  explicit LayersStage(LayersPart<T>& part) : LayersStage(part, part.input, part.output) {}
  /// The next micro-batches are near-equal slices of `share`, the same on every stage. Throws
  /// Error(invalid_argument) if there is no micro-batch.
  void start(const Share<T>& share, int micro_batches);

  Params<T> params() override { return layers_.params(); }
  std::vector<Unit<T>> units() override { return layers_.units(); }
  Shape input(int micro_batch) const override;
  Shape output(int micro_batch) const override;
  /// Throws Error(invalid_argument) if, on the last stage, output and target have other shapes.
  StageOutput<T> forward(int micro_batch, Array<T> x, Context& context) override;
  Array<T> backward(Array<T> dy, Context& context) override;

 private:
  struct BATON_HIDDEN Saved {
    Array<T> dy;
  };
  Shape of_micro_batch(const Shape& shape, int micro_batch) const;
  Module<T>& layers_;
  Shape input_, output_;
  Share<T> share_;
  int micro_batches_ = 1;
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
