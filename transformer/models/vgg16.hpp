#pragma once
/// VGG16, a model that classifies images: Simonyan, Zisserman, Very deep convolutional networks for
/// large-scale image recognition (2015), configuration D.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "../module.hpp"
#include "../ops/convolution.hpp"
#include "../pipeline/stage.hpp"
#include "../training/batch.hpp"
#include "baton/export.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Sizes and settings of a VGG16.
struct Vgg16Config {
  std::int64_t classes = 10;
  /// A factor of all channels (64 to 512) and of the classifier's hidden units (4096): a multiple
  /// of 1 / 64.
  double width = 1;
  /// Rows and columns that means of the last pixels form, which the classifier takes. Images of 32
  /// x 32 have one such pixel. 7: the weights have torchvision's shapes.
  std::int64_t pooled = 1;
  double dropout = 0.5;  ///< of the classifier's hidden units

  /// Elements of all parameters. Throws Error(invalid_argument) unless the sizes are positive, and
  /// `width` is a multiple of 1 / 64.
  std::int64_t parameters() const;
  /// The same of each layer with weights, convolutions first. Throws as parameters().
  std::vector<std::int64_t> layer_parameters() const;
};

/// Images with their labels.
template <class T>
struct ImageBatch {
  Array<T> images;                   ///< [n, 3, h, w]
  std::vector<std::int32_t> labels;  ///< [n]

  /// The number of images.
  std::int64_t samples() const { return images.extent(0); }
  /// The labels, as ops take them.
  View<const std::int32_t> labels_view() const {
    return {labels.data(), {static_cast<std::int64_t>(labels.size())}};
  }
};

/// 13 convolutions of 3 x 3 with ReLU, of which the 2nd, 4th, 7th, 10th and 13th are followed by 2
/// x 2 max pooling; then 3 linear layers, the first two with ReLU and dropout. Names and shapes of
/// parameters are torchvision's ("features.0.weight", "classifier.6.bias" …). Ranks along axis dp
/// have other images; all have all parameters.
///
/// Weights of convolutions are drawn normally with deviation sqrt(2 / (9 · outputs)), as He et al.,
/// Delving deep into rectifiers (2015), those of linear layers with 0.01 /
/// sqrt(width); biases are 0.
///
/// A part of the model has some of its 16 layers, convolutions first, with the same weights; what
/// follows a layer, ReLU, pooling and dropout, is with it, and the mean of the last pixels is with
/// the first linear layer.
template <class T>
class Vgg16 : public Model<T> {
 public:
  static constexpr std::int64_t layers = 16;  ///< with weights

  /// `part`: these layers; otherwise all. Throws as Vgg16Config::parameters(), and
  /// Error(invalid_argument) if there are no such layers.
  Vgg16(const Vgg16Config& config, const Random& random, Range part = {0, layers});

  /// This rank's share of the mean over `samples` images of -log of the probability of the label:
  /// shares add up over axis dp. Throws Error(invalid_argument) if images are not [n, 3, h, w] with
  /// h and w of at least 32, there are not as many labels, or a label is no class.
  double forward(const ImageBatch<T>& batch, double samples, Context& context);
  /// Adds the gradients of the last forward() with this context that has had no backward().
  void backward(Context& context);
  /// forward() of a part. `x` is the activation of the part before, which the first does not need;
  /// the last returns the logits beside the loss. `x` must not change before backward.
  StageOutput<T> forward(const ImageBatch<T>& batch, double samples, Array<T> x, Context& context);
  /// backward() of a part: the gradient by x, from that by the activation.
  Array<T> backward(Array<T> dy, Context& context);
  /// The shape of the activation before a layer (0 to `layers`), for images of this shape. That of
  /// convolutions is [n, channels / block, h, w, block]: channels of a block lie side by side, as
  /// is fastest on this processor.
  Shape activation(const Shape& images, std::int64_t layer) const;
  /// The layers that it has.
  Range part() const { return part_; }
  /// The logits of images [n, 3, h, w], [n, classes]. Without dropout; keeps nothing in the
  /// context.
  Array<T> logits(const Array<T>& images, Context context = {});

  Params<T> params() override;
  /// The convolutions up to each pooling are a unit, those of them that a part has, and so is each
  /// linear layer.
  std::vector<Unit<T>> units() override;
  /// Sizes and settings.
  const Vgg16Config& config() const { return config_; }
  /// Whether it has the first layer.
  bool first() const { return part_.begin == 0; }
  /// Whether it has the last layer.
  bool last() const { return part_.end == layers; }

 private:
  struct BATON_HIDDEN Saved;
  struct BATON_HIDDEN WeightedLayer {
    Param<T> weight, bias;
    std::size_t unit = 0;
    bool pooled = false;      ///< whether max pooling follows
    std::int64_t number = 0;  ///< among the whole model's convolutions, or its linear layers
  };
  WeightedLayer layer(const std::string& name, const Shape& shape, double deviation,
                      const Random& random);
  /// The result of all layers; `saved` gets the values that backward needs.
  Array<T> body(Array<T> x, Saved& saved, Context& context);
  Array<T> features(Array<T> x, Saved& saved, Context& context);
  Array<T> classified(Array<T> x, Saved& saved, Context& context);
  Array<T> features_backward(Array<T> dy, Saved& saved, Context& context);
  Array<T> classified_backward(Array<T> dy, Saved& saved, Context& context);
  /// Whether a linear layer is the last one.
  bool gives_logits(const WeightedLayer& linear) const {
    return last() && &linear == &linears_.back();
  }
  /// Whether a unit begins, or ends, with convolution `l` of this part.
  bool begins_unit(std::size_t l) const;
  bool ends_unit(std::size_t l) const;
  void expect_whole(std::string_view call) const;
  Dropout dropout(const WeightedLayer& linear, const Shape& x, const Context& context) const;

  Vgg16Config config_;
  Range part_;
  std::int64_t block_;  ///< channels that lie side by side
  std::vector<WeightedLayer> convolutions_, linears_;
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
