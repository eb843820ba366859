#pragma once
/// Maps of elements: what a thread does for four of them, or for one of a strided view.

#include <cmath>

#include "../ops/ops.hpp"
#include "element.hpp"
#include "philox.hpp"

namespace baton::transformer::cuda {

struct Same {
  BATON_DEVICE float operator()(float x) const { return x; }
};
struct Add {
  BATON_DEVICE float operator()(float x, float y) const { return x + y; }
};
// NaN passes through.
struct Relu {
  BATON_DEVICE float operator()(float x) const { return x < 0 ? 0 : x; }
};
struct ReluBackward {
  BATON_DEVICE float operator()(float dy, float x) const { return x > 0 ? dy : 0; }
};
/// Φ(x), the normal distribution's function.
BATON_DEVICE float normal_distribution(float x) { return 0.5f * std::erfc(-0.707106781f * x); }
struct Gelu {
  BATON_DEVICE float operator()(float x) const { return x * normal_distribution(x); }
};
struct GeluBackward {
  BATON_DEVICE float operator()(float dy, float x) const {
    return dy * (normal_distribution(x) + x * 0.398942280f * std::exp(-0.5f * x * x));
  }
};

/// The same for bf16: Φ and its derivative from one power. Abramowitz and Stegun, Handbook of
/// Mathematical Functions, 26.2.17. Φ's absolute error is at most 7.5e-8; its relative error is
/// 0.4 % at -6 and 1 % at -8, where |x · Φ(x)| < 1e-14.
struct Normal {
  float below, density;
  explicit BATON_DEVICE Normal(float x) {
    const float t = reciprocal(1 + 0.2316419f * std::fabs(x));
    density = 0.398942280f * power_of_two(-0.5f * log2_of_e * x * x);
    const float rest =
        density * t *
        (0.319381530f +
         t * (-0.356563782f + t * (1.781477937f + t * (-1.821255978f + t * 1.330274429f))));
    below = x > 0 ? 1 - rest : rest;
  }
};
struct GeluOfBf16 {
  BATON_DEVICE float operator()(float x) const { return x * Normal(x).below; }
};
struct GeluOfBf16Backward {
  BATON_DEVICE float operator()(float dy, float x) const {
    const Normal normal(x);
    return dy * (normal.below + x * normal.density);
  }
};

/// x · gate(x), gate = 1 / (1 + exp(z)) = (1 + tanh(sqrt(2 / π) · (x + 0.044715 x³))) / 2.
struct GeluTanh {
  static BATON_DEVICE float z(float x) { return x * (-1.59576912f - 0.0713548163f * x * x); }
  BATON_DEVICE float operator()(float x) const { return x / (1 + std::exp(z(x))); }
};
/// gate - gate · (1 - gate) · x · z', where 1 - gate = exp(z) · gate keeps its digits.
struct GeluTanhBackward {
  BATON_DEVICE float operator()(float dy, float x) const {
    const float z = GeluTanh::z(x), slope = x * (-1.59576912f - 0.214064449f * x * x);
    if (z > 80) return 0;  // gate is 0 for good
    const float e = std::exp(z), gate = 1 / (1 + e), way = e * gate * gate;
    // Where the gate is 1 for good, the slope may be infinite.
    return dy * (gate - (way == 0 ? 0 : way * slope));
  }
};

/// each(function, derivative) of an activation of elements of T.
template <class T, class Each>
void with_activation(Activation f, const Each& each) {
  switch (f) {
    case Activation::relu:
      return each(Relu(), ReluBackward());
    case Activation::gelu:
      if constexpr (std::is_same_v<T, bf16>) {
        return each(GeluOfBf16(), GeluOfBf16Backward());
      } else {
        return each(Gelu(), GeluBackward());
      }
    case Activation::gelu_tanh:
      return each(GeluTanh(), GeluTanhBackward());
  }
}

/// to[i] = f(from[i]...) for elements 4 · quad to 4 · quad + 3 of n; `quads`: all addresses take
/// them. `to` may be a `from`.
template <class F, class To, class... From>
BATON_DEVICE void map_unit(F f, std::int64_t n, std::int64_t quad, bool quads, To* to,
                           const From*... from) {
  const std::int64_t first = 4 * quad;
  if (quads && first + 4 <= n) {
    Quad<float> result;
    const auto each = [&](const auto&... values) {
      BATON_UNROLL
      for (int i = 0; i < 4; ++i) result.lane[i] = f(values.lane[i]...);
    };
    each(load_quad(from + first)...);
    store_quad(to + first, result);
    return;
  }
  for (std::int64_t i = first; i < n && i < first + 4; ++i) store(to + i, f(load(from + i)...));
}

/// y[row, i] += bias[i] for four elements of a row of y [rows, n]; `quads`: all rows and bias take
/// them.
template <class T>
BATON_DEVICE void add_to_rows_unit(std::int64_t n, std::int64_t row, std::int64_t quad, bool quads,
                                   const T* bias, T* y) {
  const std::int64_t first = 4 * quad, left = n - first;
  Quad<float> sum = load_some(y + row * n + first, quads, left);
  const Quad<float> more = load_some(bias + first, quads, left);
  BATON_UNROLL
  for (int i = 0; i < 4; ++i) sum.lane[i] += more.lane[i];
  store_some(y + row * n + first, quads, left, sum);
}

/// Elements of up to 8 dimensions at different strides for each operand; row-major.
template <int operands>
struct Strides {
  int rank = 0;
  std::int64_t count = 1;
  std::int64_t extent[8] = {};
  std::int64_t stride[operands][8] = {};

  struct Offsets {
    std::int64_t of[operands];
  };
  BATON_DEVICE Offsets at(std::int64_t index) const {
    Offsets offsets{};
    for (int d = rank; d-- > 0;) {
      const std::int64_t rest = d > 0 ? index / extent[d] : 0, here = index - rest * extent[d];
      for (int k = 0; k < operands; ++k) offsets.of[k] += here * stride[k][d];
      index = rest;
    }
    return offsets;
  }
};

/// to = from, converted.
template <class To, class From>
BATON_DEVICE void assign_unit(const Strides<2>& strides, std::int64_t index, To* to,
                              const From* from) {
  const auto at = strides.at(index);
  if constexpr (std::is_same_v<To, From>) {
    to[at.of[0]] = from[at.of[1]];
  } else {
    store(to + at.of[0], load(from + at.of[1]));
  }
}
/// y += x.
template <class T>
BATON_DEVICE void add_unit(const Strides<2>& strides, std::int64_t index, T* y, const T* x) {
  const auto at = strides.at(index);
  store(y + at.of[0], load(y + at.of[0]) + load(x + at.of[1]));
}

/// Dropout of an element; the second operand's offset, from `first` on, is its place in the whole.
template <class T>
BATON_DEVICE void dropout_unit(const Strides<2>& strides, std::int64_t index, const Mask& mask,
                               std::uint64_t first, T* x) {
  const auto at = strides.at(index);
  const float factor = mask.at(first + static_cast<std::uint64_t>(at.of[1]));
  // A dropped element becomes 0, NaN and infinity included.
  store(x + at.of[0], factor == 0 ? 0 : load(x + at.of[0]) * factor);
}

// --- optimizers ----------------------------------------------------------------------------------

/// An element's value in f32: the master's where there is one.
template <class T>
BATON_DEVICE float value_of(const T* value, const float* master, std::int64_t i) {
  return master ? master[i] : load(value + i);
}
template <class T>
BATON_DEVICE void set_value(T* value, float* master, std::int64_t i, float to) {
  if (master) master[i] = to;
  store(value + i, to);
}

/// The factors of SGD's step.
struct SgdFactors {
  float rate, momentum, decay;
};
/// `velocity` may be null.
template <class T>
BATON_DEVICE void sgd_unit(const SgdFactors& by, std::int64_t i, const T* grad, T* value,
                           float* master, float* velocity) {
  const float before = value_of(value, master, i);
  float step = load(grad + i) + by.decay * before;
  if (velocity) step = velocity[i] = by.momentum * velocity[i] + step;
  set_value(value, master, i, before - by.rate * step);
}

/// The factors of AdamW's step; rate and scale include the corrections of bias.
struct AdamStep {
  float rate, scale, old_mean, new_mean, old_square, new_square, epsilon, kept;
};
template <class T>
BATON_DEVICE void adamw_unit(const AdamStep& by, std::int64_t i, const T* grad, T* value,
                             float* master, float* mean, float* square) {
  const float g = load(grad + i);
  mean[i] = by.old_mean * mean[i] + by.new_mean * g;
  square[i] = by.old_square * square[i] + by.new_square * g * g;
  const float step = by.rate * mean[i] / (std::sqrt(square[i]) * by.scale + by.epsilon);
  set_value(value, master, i, by.kept * value_of(value, master, i) - step);
}

}  // namespace baton::transformer::cuda
