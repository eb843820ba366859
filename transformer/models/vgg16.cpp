#include "vgg16.hpp"

#include <fmt/core.h>

#include <cmath>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "baton/error.hpp"

namespace baton::transformer {
namespace {

constexpr std::int64_t colors = 3;
constexpr std::int64_t base = 64;
constexpr double linear_deviation = 0.01;

/// A convolution: its channels in units of 64, and whether pooling follows.
struct Convolution {
  std::int64_t outputs;
  bool pooled;
};
constexpr Convolution convolutions[] = {{1, false}, {1, true},  {2, false}, {2, true},  {4, false},
                                        {4, false}, {4, true},  {8, false}, {8, false}, {8, true},
                                        {8, false}, {8, false}, {8, true}};
constexpr auto convolution_count = static_cast<std::int64_t>(std::size(convolutions));
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

std::vector<std::int64_t> Vgg16Config::layer_parameters() const {
  std::vector<std::int64_t> elements;
  std::int64_t inputs = colors;
  for (const Convolution& convolution : convolutions) {
    const std::int64_t outputs = convolution.outputs * unit_channels(*this);
    elements.push_back(outputs * (9 * inputs + 1));
    inputs = outputs;
  }
  const auto sizes = linear_sizes(*this);
  for (std::size_t l = 0; l + 1 < sizes.size(); ++l)
    elements.push_back(sizes[l + 1] * (sizes[l] + 1));
  return elements;
}

std::int64_t Vgg16Config::parameters() const {
  const auto elements = layer_parameters();
  return std::accumulate(elements.begin(), elements.end(), std::int64_t{0});
}

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
Vgg16<T>::Vgg16(const Vgg16Config& config, const Random& random, Range part)
    : config_(config), part_(part), block_(channel_block<T>(unit_channels(config))) {
  static_assert(layers == convolution_count + 3);
  if (part.begin < 0 || part.end > layers || part.size() < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("VGG16: expected at least one of layers 0 to {}, found [{}, {})",
                            layers - 1, part.begin, part.end));
  }
  const auto has = [&](std::int64_t number) { return part.begin <= number && number < part.end; };
  std::int64_t inputs = colors;
  std::size_t unit = 0;
  int name = 0;  // ReLU and pooling count as torchvision's layers do
  for (std::int64_t number = 0; number < convolution_count; ++number) {
    const Convolution& convolution = convolutions[number];
    const std::int64_t outputs = convolution.outputs * unit_channels(config);
    if (has(number)) {
      convolutions_.push_back(layer(fmt::format("features.{}", name), {outputs, inputs, 3, 3},
                                    std::sqrt(2.0 / static_cast<double>(9 * outputs)), random));
      convolutions_.back().number = number;
      convolutions_.back().unit = unit;
      convolutions_.back().pooled = convolution.pooled;
      unit += convolution.pooled ? 1 : 0;
    }
    name += convolution.pooled ? 3 : 2;
    inputs = outputs;
  }
  const auto sizes = linear_sizes(config);
  for (std::int64_t number = 0; number < layers - convolution_count; ++number) {
    if (!has(convolution_count + number)) continue;
    const auto l = static_cast<std::size_t>(number);
    linears_.push_back(layer(fmt::format("classifier.{}", 3 * number), {sizes[l + 1], sizes[l]},
                             linear_deviation / std::sqrt(config.width), random));
    linears_.back().number = number;
    linears_.back().unit = unit++;
  }
}

template <class T>
void Vgg16<T>::expect_whole(std::string_view call) const {
  if (first() && last()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("VGG16: {}: expected all {} layers, found [{}, {})", call, layers,
                          part_.begin, part_.end));
}

template <class T>
Params<T> Vgg16<T>::params() {
  Params<T> all;
  for (auto* kind : {&linears_, &convolutions_})
    for (auto layer = kind->rbegin(); layer != kind->rend(); ++layer)
      all.insert(all.end(), {&layer->weight, &layer->bias});
  return all;
}

template <class T>
std::vector<Unit<T>> Vgg16<T>::units() {
  std::vector<Unit<T>> units;
  for (auto* kind : {&convolutions_, &linears_}) {
    for (WeightedLayer& layer : *kind) {
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
Shape Vgg16<T>::activation(const Shape& images, std::int64_t layer) const {
  if (layer == 0) return images;
  const std::int64_t unit = unit_channels(config_);
  if (layer > convolution_count) {
    const auto sizes = linear_sizes(config_);
    return {images[0], sizes[static_cast<std::size_t>(layer - convolution_count)]};
  }
  std::int64_t h = images[2], w = images[3];
  for (std::int64_t l = 0; l < layer; ++l)
    if (convolutions[l].pooled) h /= 2, w /= 2;
  return {images[0], convolutions[layer - 1].outputs * unit / block_, h, w, block_};
}

template class Vgg16<float>;
template class Vgg16<double>;
template class Vgg16<bf16>;

}  // namespace baton::transformer
