#include "vgg16.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "../shape_guard.hpp"
#include "baton/error.hpp"

namespace baton::transformer {
namespace {

constexpr std::int64_t colors = 3;
constexpr std::int64_t least_side = 32;  // five poolings leave one pixel of it
constexpr std::int64_t base = 64;
constexpr double linear_deviation = 0.01;

/// A convolution: its channels in units of 64, and whether pooling follows.
struct Stage {
  std::int64_t outputs;
  bool pooled;
};
constexpr Stage stages[] = {{1, false}, {1, true},  {2, false}, {2, true},  {4, false},
                            {4, false}, {4, true},  {8, false}, {8, false}, {8, true},
                            {8, false}, {8, false}, {8, true}};
constexpr std::int64_t last_channels = 8, hidden_units = 64;  // in units of 64

/// 64 · width.
std::int64_t unit_channels(const Vgg16Config& config) {
  const double channels = config.width * static_cast<double>(base);
  if (!(channels >= 1) || channels != std::floor(channels) || config.classes < 1 ||
      config.pooled < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("VGG16: expected a width of n / {} and at least 1 class and 1 pooled "
                            "row, found width {}, {} classes and {} rows",
                            base, config.width, config.classes, config.pooled));
  }
  return static_cast<std::int64_t>(channels);
}

/// Inputs of the linear layers, then the last one's outputs.
std::vector<std::int64_t> linear_sizes(const Vgg16Config& config) {
  const std::int64_t unit = unit_channels(config), hidden = hidden_units * unit;
  return {last_channels * unit * config.pooled * config.pooled, hidden, hidden, config.classes};
}

}  // namespace

std::int64_t Vgg16Config::parameters() const {
  std::int64_t elements = 0, inputs = colors;
  for (const Stage& stage : stages) {
    const std::int64_t outputs = stage.outputs * unit_channels(*this);
    elements += outputs * (9 * inputs + 1);
    inputs = outputs;
  }
  const auto sizes = linear_sizes(*this);
  for (std::size_t l = 0; l + 1 < sizes.size(); ++l) elements += sizes[l + 1] * (sizes[l] + 1);
  return elements;
}

/// Results of ReLU are kept as inputs of the next layers; those that are pooled, after pooling
/// only, since pooled results are positive where gradients pass.
template <class T>
struct Vgg16<T>::Saved {
  std::vector<Array<T>> inputs;             // of convolutions
  std::vector<Array<std::uint8_t>> places;  // of poolings
  Array<T> features;                        // the last pooling's result
  std::vector<Array<T>> linear_inputs;
  Array<T> dlogits;
};

template <class T>
typename Vgg16<T>::WeightedLayer Vgg16<T>::layer(const std::string& name, const Shape& shape,
                                                 double deviation, const Random& random) {
  WeightedLayer layer{{name + ".weight", Array<T>::uninitialized(shape)},
                      {name + ".bias", Array<T>({shape[0]})}};
  fill_normal(layer.weight.value.view(), random.of(layer.weight.name), deviation);
  layer.weight.partial = layer.bias.partial = Axis::dp;
  return layer;
}

template <class T>
Vgg16<T>::Vgg16(const Vgg16Config& config, const Random& random)
    : config_(config), block_(channel_block<T>(unit_channels(config))) {
  std::int64_t inputs = colors;
  std::size_t unit = 0;
  int number = 0;  // ReLU and pooling count as torchvision's layers do
  for (const Stage& stage : stages) {
    const std::int64_t outputs = stage.outputs * unit_channels(config);
    convolutions_.push_back(layer(fmt::format("features.{}", number), {outputs, inputs, 3, 3},
                                  std::sqrt(2.0 / static_cast<double>(9 * outputs)), random));
    convolutions_.back().unit = unit;
    convolutions_.back().pooled = stage.pooled;
    number += stage.pooled ? 3 : 2;
    unit += stage.pooled ? 1 : 0;
    inputs = outputs;
  }
  const auto sizes = linear_sizes(config);
  for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
    linears_.push_back(layer(fmt::format("classifier.{}", 3 * l), {sizes[l + 1], sizes[l]},
                             linear_deviation / std::sqrt(config.width), random));
    linears_.back().unit = unit++;
  }
}

template <class T>
Params<T> Vgg16<T>::params() {
  Params<T> all;
  for (auto* layers : {&linears_, &convolutions_})
    for (auto layer = layers->rbegin(); layer != layers->rend(); ++layer)
      all.insert(all.end(), {&layer->weight, &layer->bias});
  return all;
}

template <class T>
std::vector<Unit<T>> Vgg16<T>::units() {
  std::vector<Unit<T>> units;
  for (auto* layers : {&convolutions_, &linears_}) {
    for (WeightedLayer& layer : *layers) {
      if (layer.unit == units.size()) {
        const std::string& name = layer.weight.name;
        units.push_back({name.substr(0, name.rfind('.')), {}});
      }
      Params<T>& params = units[layer.unit].params;
      params.insert(params.end(), {&layer.weight, &layer.bias});
    }
  }
  return units;
}

template <class T>
Dropout Vgg16<T>::dropout(std::size_t linear, const Shape& x, const Context& context) const {
  if (!context.training || config_.dropout == 0) return {};
  const Random random = context.random.of(fmt::format("classifier.{}", 3 * linear + 2));
  return {config_.dropout, random, {x, {context.first_sample, 0}}};
}

template <class T>
Array<T> Vgg16<T>::features(const Array<T>& images, Saved& saved, Context& context) {
  expect_shape("VGG16: images", images.shape(), {any, colors, any, any});
  std::int64_t h = images.extent(2), w = images.extent(3);
  if (std::min(h, w) < least_side) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("VGG16: expected images of at least {} x {} pixels, found {}",
                            least_side, least_side, images.shape().text()));
  }
  const std::int64_t n = images.extent(0);
  Array<T> x = images.reshaped({n, colors, h, w, 1});
  for (std::size_t l = 0; l < convolutions_.size(); ++l) {
    const WeightedLayer& layer = convolutions_[l];
    if (l == 0 || convolutions_[l - 1].pooled) context.enter(layer.unit, false);
    if (context.keeps) saved.inputs.push_back(x);
    const std::int64_t outputs = layer.weight.value.extent(0);
    auto y = Array<T>::uninitialized({n, outputs / block_, h, w, block_});
    convolution<T>(x, layer.weight.value, layer.bias.value, Window(), true, y.view(),
                   context.meanwhile);
    if (layer.pooled) {
      h /= 2, w /= 2;
      x = Array<T>::uninitialized({n, outputs / block_, h, w, block_});
      auto places = Array<std::uint8_t>::uninitialized(x.shape());
      max_pool<T>(y, x.view(), places.view());
      if (context.keeps) saved.places.push_back(places);
      context.leave(layer.unit, false);
    } else {
      x = y;
    }
  }
  return x;
}

template <class T>
Array<T> Vgg16<T>::body(const Array<T>& images, Saved& saved, Context& context) {
  saved.features = features(images, saved, context);
  const std::int64_t n = images.extent(0), inputs = linears_[0].weight.value.extent(1);
  const std::int64_t channels = inputs / (config_.pooled * config_.pooled);
  auto means = Array<T>::uninitialized({n, channels, config_.pooled, config_.pooled});
  average_pool<T>(saved.features, means.view());
  Array<T> x = means.reshaped({n, inputs});
  for (std::size_t l = 0; l < linears_.size(); ++l) {
    const WeightedLayer& layer = linears_[l];
    context.enter(layer.unit, false);
    if (context.keeps) saved.linear_inputs.push_back(x);
    auto y = Array<T>::uninitialized({n, layer.weight.value.extent(0)});
    if (l + 1 < linears_.size()) {
      linear_activate<T>(Activation::relu, x, layer.weight.value, layer.bias.value, y.view(),
                         y.view());
      dropout(l, y.shape(), context).apply(y.view());
    } else {
      linear<T>(x, layer.weight.value, layer.bias.value, y.view());
    }
    context.leave(layer.unit, false);
    x = y;
  }
  return x;
}

template <class T>
double Vgg16<T>::forward(const ImageBatch<T>& batch, double samples, Context& context) {
  Saved saved;
  const Array<T> logits = body(batch.images, saved, context);
  if (context.keeps) saved.dlogits = Array<T>::uninitialized(logits.shape());
  const double loss =
      cross_entropy<T>(logits.view(), batch.labels_view(), samples, saved.dlogits.view());
  context.push(std::move(saved));
  return loss;
}

template <class T>
void Vgg16<T>::backward(Context& context) {
  Saved saved = context.pop<Saved>();
  Array<T> dy = saved.dlogits;
  for (std::size_t l = linears_.size(); l-- > 0;) {
    WeightedLayer& layer = linears_[l];
    context.enter(layer.unit, true);
    if (l + 1 < linears_.size()) {
      // Results that were dropped are 0, and so are their gradients already.
      dropout(l, dy.shape(), context).apply(dy.view());
      activate_backward<T>(Activation::relu, dy, saved.linear_inputs[l + 1], dy.view());
    }
    linear_backward_weight<T>(saved.linear_inputs[l], dy, layer.weight.grad.view(),
                              layer.bias.grad.view(), context.meanwhile);
    context.complete(layer.weight);
    context.complete(layer.bias);
    auto dx = Array<T>::uninitialized(saved.linear_inputs[l].shape());
    linear_backward_input<T>(dy, layer.weight.value, dx.view());
    context.leave(layer.unit, true);
    dy = dx;
  }
  const std::int64_t channels = saved.features.extent(1) * saved.features.extent(4);
  const Array<T> means = dy.reshaped({dy.extent(0), channels, config_.pooled, config_.pooled});
  auto dx = Array<T>::uninitialized(saved.features.shape());
  average_pool_backward<T>(means, dx.view());
  features_backward(dx, saved, context);
}

template <class T>
void Vgg16<T>::features_backward(Array<T> dy, Saved& saved, Context& context) {
  Array<T> y = std::move(saved.features);
  for (std::size_t l = convolutions_.size(); l-- > 0;) {
    WeightedLayer& layer = convolutions_[l];
    const Array<T> x = std::move(saved.inputs.back());
    saved.inputs.pop_back();
    activate_backward<T>(Activation::relu, dy, y, dy.view());
    if (layer.pooled) {
      context.enter(layer.unit, true);
      auto apart =
          Array<T>::uninitialized({x.extent(0), y.extent(1), x.extent(2), x.extent(3), block_});
      max_pool_backward<T>(dy, saved.places.back(), apart.view());
      saved.places.pop_back();
      dy = apart;
    }
    convolution_backward_weight<T>(x, dy, Window(), layer.weight.grad.view(),
                                   layer.bias.grad.view(), context.meanwhile);
    context.complete(layer.weight);
    context.complete(layer.bias);
    if (l > 0) {
      auto dx = Array<T>::uninitialized(x.shape());
      convolution_backward_input<T>(dy, layer.weight.value, Window(), dx.view(), context.meanwhile);
      dy = dx;
    }
    y = x;
    if (l == 0 || convolutions_[l - 1].pooled) context.leave(layer.unit, true);
  }
}

template <class T>
Array<T> Vgg16<T>::logits(const Array<T>& images, Context context) {
  context.keeps = context.training = false;
  Saved saved;
  return body(images, saved, context);
}

template class Vgg16<float>;
template class Vgg16<double>;
template class Vgg16<bf16>;

}  // namespace baton::transformer
