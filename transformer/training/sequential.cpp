#include "sequential.hpp"

#include "../linear_layers.hpp"

namespace baton::transformer {

namespace {
template <class T>
bool has_params(Module<T>& module) {
  return !module.params().empty();
}
}  // namespace

template <class T>
Array<T> Activate<T>::forward(const Array<T>& x, Context& context) {
  auto y = Array<T>::uninitialized(x.shape());
  activate<T>(function_, x, y.view());
  context.push(Saved{x});
  return y;
}

template <class T>
Array<T> Activate<T>::backward(const Array<T>& dy, Context& context) {
  const auto saved = context.pop<Saved>();
  auto dx = Array<T>::uninitialized(saved.x.shape());
  activate_backward<T>(function_, dy, saved.x, dx.view());
  return dx;
}

template <class T>
Array<T> Sequential<T>::forward(const Array<T>& x, Context& context) {
  Array<T> y = x;
  std::size_t unit = 0;
  for (const Layer& layer : layers_) {
    const bool uses = has_params(*layer.module);
    if (uses) context.enter(unit, false);
    y = layer.module->forward(y, context);
    if (uses) context.leave(unit++, false);
  }
  return y;
}

template <class T>
Array<T> Sequential<T>::backward(const Array<T>& dy, Context& context) {
  Array<T> dx = dy;
  std::size_t unit = units().size();
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    const bool uses = has_params(*layer->module);
    if (uses) context.enter(--unit, true);
    dx = layer->module->backward(dx, context);
    if (uses) context.leave(unit, true);
  }
  return dx;
}

template <class T>
std::vector<Unit<T>> Sequential<T>::units() {
  std::vector<Unit<T>> units;
  for (const Layer& layer : layers_)
    if (has_params(*layer.module)) units.push_back({layer.name, layer.module->params()});
  return units;
}

template <class T>
Params<T> Sequential<T>::params() {
  Params<T> all;
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    const Params<T> its = layer->module->params();
    all.insert(all.end(), its.begin(), its.end());
  }
  return all;
}

template <class T>
SimpleMLP<T>::SimpleMLP(std::int64_t in, std::int64_t hidden, std::int64_t out,
                        const Random& random) {
  this->add("fc1", std::make_unique<Linear<T>>("fc1", in, hidden, false, random));
  this->add("gelu", std::make_unique<Activate<T>>(Activation::gelu));
  this->add("fc2", std::make_unique<Linear<T>>("fc2", hidden, out, false, random));
}

#define BATON_INSTANTIATE(T)    \
  template class Activate<T>;   \
  template class Sequential<T>; \
  template class SimpleMLP<T>;
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
