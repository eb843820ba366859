/// VGG16's computations: forward and backward of any part.

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "../instantiation.hpp"
#include "../shape_guard.hpp"
#include "../weight_gradient.hpp"
#include "baton/error.hpp"
#include "vgg16.hpp"

namespace baton::transformer {
namespace {

constexpr std::int64_t least_side = 32;  // five poolings leave one pixel of it

void expect_images(const Shape& images) {
  expect_shape("VGG16: images", images, {any, 3, any, any});
  if (std::min(images[2], images[3]) >= least_side) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("VGG16: expected images of at least {} x {} pixels, found {}", least_side,
                          least_side, images.text()));
}

}  // namespace

/// Results of ReLU are kept as inputs of the next layers; those that are pooled, after pooling
/// only, since pooled results are positive where gradients pass.
template <class T>
struct Vgg16<T>::Saved {
  std::vector<Array<T>> inputs;             // of convolutions
  std::vector<Array<std::uint8_t>> places;  // of poolings
  Array<T> features;                        // the last convolution's result
  Shape averaged;                           // shape of the features that are averaged
  std::vector<Array<T>> linear_inputs;      // and the result, if another part follows
  Array<T> dlogits;
};

template <class T>
Dropout Vgg16<T>::dropout(const WeightedLayer& linear, const Shape& x,
                          const Context& context) const {
  if (!context.training || config_.dropout == 0) return {};
  const Random random = context.random.of(fmt::format("classifier.{}", 3 * linear.number + 2));
  return {config_.dropout, random, {x, {context.first_sample, 0}}};
}

template <class T>
bool Vgg16<T>::begins_unit(std::size_t l) const {
  return l == 0 || convolutions_[l - 1].unit != convolutions_[l].unit;
}
template <class T>
bool Vgg16<T>::ends_unit(std::size_t l) const {
  return l + 1 == convolutions_.size() || convolutions_[l + 1].unit != convolutions_[l].unit;
}

template <class T>
Array<T> Vgg16<T>::features(Array<T> x, Saved& saved, Context& context) {
  if (first()) x = x.reshaped({x.extent(0), x.extent(1), x.extent(2), x.extent(3), 1});
  const std::int64_t n = x.extent(0);
  std::int64_t h = x.extent(2), w = x.extent(3);
  for (std::size_t l = 0; l < convolutions_.size(); ++l) {
    const WeightedLayer& layer = convolutions_[l];
    if (begins_unit(l)) context.enter(layer.unit, false);
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
    } else {
      x = y;
    }
    if (ends_unit(l)) context.leave(layer.unit, false);
  }
  if (context.keeps) saved.features = x;
  return x;
}

template <class T>
Array<T> Vgg16<T>::classified(Array<T> x, Saved& saved, Context& context) {
  const std::int64_t n = x.extent(0);
  if (linears_[0].number == 0) {
    saved.averaged = x.shape();
    const std::int64_t channels = x.extent(1) * x.extent(4);
    auto means = Array<T>::uninitialized({n, channels, config_.pooled, config_.pooled});
    average_pool<T>(x, means.view());
    x = means.reshaped({n, channels * config_.pooled * config_.pooled});
  }
  for (const WeightedLayer& layer : linears_) {
    context.enter(layer.unit, false);
    if (context.keeps) saved.linear_inputs.push_back(x);
    auto y = Array<T>::uninitialized({n, layer.weight.value.extent(0)});
    if (gives_logits(layer)) {
      linear<T>(x, layer.weight.value, layer.bias.value, y.view());
    } else {
      linear_activate<T>(Activation::relu, x, layer.weight.value, layer.bias.value, y.view(),
                         y.view());
      dropout(layer, y.shape(), context).apply(y.view());
    }
    context.leave(layer.unit, false);
    x = y;
  }
  if (context.keeps && !last()) saved.linear_inputs.push_back(x);
  return x;
}

template <class T>
Array<T> Vgg16<T>::body(Array<T> x, Saved& saved, Context& context) {
  if (!convolutions_.empty()) x = features(std::move(x), saved, context);
  if (!linears_.empty()) x = classified(std::move(x), saved, context);
  return x;
}

template <class T>
double Vgg16<T>::forward(const ImageBatch<T>& batch, double samples, Context& context) {
  expect_whole("forward");
  return forward(batch, samples, {}, context).loss;
}

template <class T>
StageOutput<T> Vgg16<T>::forward(const ImageBatch<T>& batch, double samples, Array<T> x,
                                 Context& context) {
  expect_images(batch.images.shape());
  if (first()) {
    x = batch.images;
  } else {
    expect_shape(fmt::format("VGG16: input of layer {}", part_.begin), x.shape(),
                 activation(batch.images.shape(), part_.begin));
  }
  Saved saved;
  StageOutput<T> output;
  output.activation = body(std::move(x), saved, context);
  if (last()) {
    const Array<T>& logits = output.activation;
    if (context.keeps) saved.dlogits = Array<T>::uninitialized(logits.shape());
    output.loss =
        cross_entropy<T>(logits.view(), batch.labels_view(), samples, saved.dlogits.view());
  }
  context.push(std::move(saved));
  return output;
}

template <class T>
void Vgg16<T>::backward(Context& context) {
  expect_whole("backward");
  backward({}, context);
}

template <class T>
Array<T> Vgg16<T>::backward(Array<T> dy, Context& context) {
  Saved saved = context.pop<Saved>();
  if (last()) {
    dy = std::move(saved.dlogits);
  } else if (!dy.alone()) {
    dy = dy.copy();
  }
  if (!linears_.empty()) dy = classified_backward(std::move(dy), saved, context);
  if (!convolutions_.empty()) dy = features_backward(std::move(dy), saved, context);
  return dy;
}

template <class T>
Array<T> Vgg16<T>::classified_backward(Array<T> dy, Saved& saved, Context& context) {
  for (std::size_t l = linears_.size(); l-- > 0;) {
    WeightedLayer& layer = linears_[l];
    context.enter(layer.unit, true);
    if (!gives_logits(layer)) {
      // Results that were dropped are 0, and so are their gradients already.
      dropout(layer, dy.shape(), context).apply(dy.view());
      activate_backward<T>(Activation::relu, dy, saved.linear_inputs[l + 1], dy.view());
    }
    weight_gradient(saved.linear_inputs[l], dy, layer.weight, layer.bias, context,
                    context.meanwhile);
    auto dx = Array<T>::uninitialized(saved.linear_inputs[l].shape());
    linear_backward_input<T>(dy, layer.weight.value, dx.view());
    context.leave(layer.unit, true);
    dy = dx;
  }
  if (linears_[0].number > 0) return dy;
  const std::int64_t channels = saved.averaged[1] * saved.averaged[4];
  const Array<T> means = dy.reshaped({dy.extent(0), channels, config_.pooled, config_.pooled});
  auto dx = Array<T>::uninitialized(saved.averaged);
  average_pool_backward<T>(means, dx.view());
  return dx;
}

template <class T>
Array<T> Vgg16<T>::features_backward(Array<T> dy, Saved& saved, Context& context) {
  Array<T> y = std::move(saved.features);
  for (std::size_t l = convolutions_.size(); l-- > 0;) {
    WeightedLayer& layer = convolutions_[l];
    const Array<T> x = std::move(saved.inputs.back());
    saved.inputs.pop_back();
    activate_backward<T>(Activation::relu, dy, y, dy.view());
    if (ends_unit(l)) context.enter(layer.unit, true);
    if (layer.pooled) {
      auto apart =
          Array<T>::uninitialized({x.extent(0), y.extent(1), x.extent(2), x.extent(3), block_});
      max_pool_backward<T>(dy, saved.places.back(), apart.view());
      saved.places.pop_back();
      dy = apart;
    }
    context.weight_part(
        [x, dy, &layer](const Context& now, const Meanwhile& meanwhile) {
          convolution_backward_weight<T>(x, dy, Window(), layer.weight.grad.view(),
                                         layer.bias.grad.view(), meanwhile);
          now.complete(layer.weight);
          now.complete(layer.bias);
        },
        context.meanwhile);
    if (layer.number > 0) {
      auto dx = Array<T>::uninitialized(x.shape());
      convolution_backward_input<T>(dy, layer.weight.value, Window(), dx.view(), context.meanwhile);
      dy = dx;
    } else {
      dy = {};
    }
    y = x;
    if (begins_unit(l)) context.leave(layer.unit, true);
  }
  return dy;
}

template <class T>
Array<T> Vgg16<T>::logits(const Array<T>& images, Context context) {
  expect_whole("logits");
  expect_images(images.shape());
  context.keeps = context.training = false;
  Saved saved;
  return body(images, saved, context);
}

#define BATON_INSTANTIATE(T)                                                                   \
  template double Vgg16<T>::forward(const ImageBatch<T>&, double, Context&);                   \
  template void Vgg16<T>::backward(Context&);                                                  \
  template StageOutput<T> Vgg16<T>::forward(const ImageBatch<T>&, double, Array<T>, Context&); \
  template Array<T> Vgg16<T>::backward(Array<T>, Context&);                                    \
  template Array<T> Vgg16<T>::logits(const Array<T>&, Context);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
