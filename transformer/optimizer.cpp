#include "optimizer.hpp"

#include <cmath>
#include <utility>

#include "shape_guard.hpp"

namespace baton::transformer {

template <class T>
Sgd<T>::Sgd(Params<T> params, double learning_rate)
    : params_(std::move(params)), learning_rate_(learning_rate) {
  for (const Param<T>* param : params_) shapes_.push_back(param->value.shape());
}

template <class T>
void Sgd<T>::step() {
  const T rate = static_cast<T>(learning_rate_);
  for (std::size_t p = 0; p < params_.size(); ++p)
    expect_shape("optimizer: " + params_[p]->name, params_[p]->value.shape(), shapes_[p]);
  for (const Param<T>* param : params_) {
    T* const value = param->value.data();
    const T* const grad = param->grad.data();
    for (std::int64_t i = 0; i < param->value.size(); ++i) value[i] -= rate * grad[i];
  }
}

template <class T>
AdamW<T>::AdamW(Params<T> params, const AdamWOptions& options) : options_(options) {
  for (Param<T>* param : params)
    states_.push_back({param, Array<T>(param->value.shape()), Array<T>(param->value.shape())});
}

template <class T>
void AdamW<T>::step() {
  for (const State& state : states_) {
    expect_shape("optimizer: " + state.param->name, state.param->value.shape(), state.mean.shape());
  }
  const auto& [learning_rate, beta1, beta2, epsilon, weight_decay] = options_;
  const auto count = static_cast<double>(++steps_);
  const T rate = static_cast<T>(learning_rate / (1 - std::pow(beta1, count)));
  const T scale = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, count)));
  const T old_mean = static_cast<T>(beta1), new_mean = static_cast<T>(1 - beta1);
  const T old_square = static_cast<T>(beta2), new_square = static_cast<T>(1 - beta2);
  const T least = static_cast<T>(epsilon);
  for (const State& state : states_) {
    const T kept = state.param->decays ? static_cast<T>(1 - learning_rate * weight_decay) : T(1);
    T* const value = state.param->value.data();
    T* const mean = state.mean.data();
    T* const square = state.square.data();
    const T* const grad = state.param->grad.data();
    for (std::int64_t i = 0; i < state.param->value.size(); ++i) {
      mean[i] = old_mean * mean[i] + new_mean * grad[i];
      square[i] = old_square * square[i] + new_square * grad[i] * grad[i];
      value[i] = kept * value[i] - rate * mean[i] / (std::sqrt(square[i]) * scale + least);
    }
  }
}

#define BATON_INSTANTIATE(T) \
  template class Sgd<T>;     \
  template class AdamW<T>;
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
