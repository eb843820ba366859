#include "optimizer.hpp"

#include <fmt/core.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "accelerator.hpp"
#include "baton/error.hpp"
#include "emulated.hpp"
#include "shape_guard.hpp"

namespace baton::transformer {

namespace {

template <class T>
constexpr bool has_masters = !std::is_same_v<T, Wide<T>>;

/// Empty where values need none.
template <class T>
Array<Wide<T>> master_of(const Param<T>& param) {
  Array<Wide<T>> master;
  if constexpr (has_masters<T>) {
    master = Array<Wide<T>>::uninitialized(param.value.shape());
    count_as(Purpose::optimizer, master);
    convert<T>(param.value, master.view());
  }
  return master;
}

/// Calls step(elements, their number) on the host, with what steps change.
template <class T, class Step>
void change(Param<T>& param, Array<Wide<T>>& master, const Step& step) {
  if constexpr (std::is_same_v<T, Wide<T>>) {
    step(param.value.data(), param.value.size());
  } else {
    step(master.data(), master.size());
    convert<Wide<T>>(master, param.value.view());
  }
}

/// Elements of all parameters.
template <class State>
std::int64_t elements_of(const std::vector<State>& states) {
  std::int64_t elements = 0;
  for (const State& state : states) elements += state.param->value.size();
  return elements;
}

/// A member of all states under a name.
template <class T, class State>
Kept<T> kept_of(const std::string& name, const std::vector<State>& states,
                Array<Wide<T>> State::*member) {
  Kept<T> kept{name, {}};
  for (const State& state : states) kept.of[state.param] = state.*member;
  return kept;
}

}  // namespace

template <class T>
Sgd<T>::Sgd(Params<T> params, const SgdOptions& options)
    : Optimizer<T>(options.learning_rate), options_(options) {
  for (Param<T>* param : params) {
    const Shape& shape = param->value.shape();
    const bool moves = options.momentum != 0;
    states_.push_back(
        {param, shape, moves ? Array<Wide<T>>(shape) : Array<Wide<T>>(), master_of(*param)});
    if (moves) count_as(Purpose::optimizer, states_.back().velocity);
  }
}

template <class T>
void Sgd<T>::step() {
  using W = Wide<T>;
  for (const State& state : states_)
    expect_shape("optimizer: " + state.param->name, state.param->value.shape(), state.shape);
  ++this->steps_;
  Accelerator* const device = accelerator();
  if (!device && emulates()) return emulate_optimizer(elements_of(states_));
  for (State& state : states_) {
    Param<T>& param = *state.param;
    const SgdStep step{this->learning_rate(), options_.momentum,
                       param.decays ? options_.weight_decay : 0};
    if (device) {
      device->sgd_step(step, param.grad.view(), state.velocity.view(), param.value.view(),
                       state.master.view());
      continue;
    }
    const W rate = static_cast<W>(step.rate), momentum = static_cast<W>(step.momentum),
            decay = static_cast<W>(step.decay);
    const T* const grad = param.grad.data();
    change(param, state.master, [&](W* value, std::int64_t count) {
      if (state.velocity.empty() && decay == 0) {
        for (std::int64_t i = 0; i < count; ++i) value[i] -= rate * widen(grad[i]);
      } else if (state.velocity.empty()) {
        for (std::int64_t i = 0; i < count; ++i)
          value[i] -= rate * (widen(grad[i]) + decay * value[i]);
      } else {
        W* const velocity = state.velocity.data();
        for (std::int64_t i = 0; i < count; ++i) {
          velocity[i] = momentum * velocity[i] + (widen(grad[i]) + decay * value[i]);
          value[i] -= rate * velocity[i];
        }
      }
    });
  }
}

template <class T>
std::vector<Kept<T>> Sgd<T>::kept() {
  std::vector<Kept<T>> kept;
  if (options_.momentum != 0) kept.push_back(kept_of<T>("velocity", states_, &State::velocity));
  if (has_masters<T>) kept.push_back(kept_of<T>("master", states_, &State::master));
  return kept;
}

template <class T>
AdamW<T>::AdamW(Params<T> params, const AdamWOptions& options)
    : Optimizer<T>(options.learning_rate), options_(options) {
  for (Param<T>* param : params) {
    const Shape& shape = param->value.shape();
    states_.push_back({param, Array<Wide<T>>(shape), Array<Wide<T>>(shape), master_of(*param)});
    count_as(Purpose::optimizer, states_.back().mean);
    count_as(Purpose::optimizer, states_.back().square);
  }
}

template <class T>
void AdamW<T>::step() {
  using W = Wide<T>;
  for (const State& state : states_) {
    expect_shape("optimizer: " + state.param->name, state.param->value.shape(), state.mean.shape());
  }
  Accelerator* const device = accelerator();
  const double learning_rate = this->learning_rate(), beta1 = options_.beta1,
               beta2 = options_.beta2, epsilon = options_.epsilon;
  const auto count = static_cast<double>(++this->steps_);
  if (!device && emulates()) return emulate_optimizer(elements_of(states_));
  AdamWStep step{beta1, beta2, learning_rate / (1 - std::pow(beta1, count)),
                 1 / std::sqrt(1 - std::pow(beta2, count)), epsilon};
  const W rate = static_cast<W>(step.rate), scale = static_cast<W>(step.scale);
  const W old_mean = static_cast<W>(beta1), new_mean = static_cast<W>(1 - beta1);
  const W old_square = static_cast<W>(beta2), new_square = static_cast<W>(1 - beta2);
  const W least = static_cast<W>(epsilon);
  for (State& state : states_) {
    Param<T>& param = *state.param;
    step.kept = param.decays ? 1 - learning_rate * options_.weight_decay : 1;
    if (device) {
      device->adamw_step(step, param.grad.view(), state.mean.view(), state.square.view(),
                         param.value.view(), state.master.view());
      continue;
    }
    const W kept = static_cast<W>(step.kept);
    W* const mean = state.mean.data();
    W* const square = state.square.data();
    const T* const grads = param.grad.data();
    change(param, state.master, [&](W* value, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        const W grad = widen(grads[i]);
        mean[i] = old_mean * mean[i] + new_mean * grad;
        square[i] = old_square * square[i] + new_square * grad * grad;
        value[i] = kept * value[i] - rate * mean[i] / (std::sqrt(square[i]) * scale + least);
      }
    });
  }
}

template <class T>
std::vector<Kept<T>> AdamW<T>::kept() {
  std::vector<Kept<T>> kept{kept_of<T>("mean", states_, &State::mean),
                            kept_of<T>("square", states_, &State::square)};
  if (has_masters<T>) kept.push_back(kept_of<T>("master", states_, &State::master));
  return kept;
}

double CosineSchedule::at(std::int64_t step) const {
  if (step < 0 || warmup < 0 || warmup > steps) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("learning rate: expected a step of at least 0 and a rise of 0 to {} "
                            "steps, found step {} and a rise of {}",
                            steps, step, warmup));
  }
  const auto over = [](std::int64_t part, std::int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  if (step < warmup) return peak * over(step + 1, warmup);
  if (step >= steps) return least;
  const double fallen = (1 - std::cos(std::numbers::pi * over(step - warmup, steps - warmup))) / 2;
  return peak + (least - peak) * fallen;
}

#define BATON_INSTANTIATE(T) \
  template class Sgd<T>;     \
  template class AdamW<T>;
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
