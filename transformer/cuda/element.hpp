#pragma once
/// Elements of f32 and bf16, taken as f32, one or four at a time; host and device.

#include <cstdint>

#include "baton/device_code.hpp"

namespace baton::transformer::cuda {

BATON_DEVICE float load(const float* at) { return *at; }
BATON_DEVICE float load(const bf16* at) { return floats::widen(*at); }
BATON_DEVICE void store(float* at, float value) { *at = value; }
BATON_DEVICE void store(bf16* at, float value) { *at = floats::narrow<bf16>(value); }

/// Four elements, loaded and stored at once.
template <class T>
struct alignas(4 * sizeof(T)) Quad {
  T lane[4];
};
template <class T>
BATON_DEVICE Quad<float> load_quad(const T* at) {
  const auto from = *reinterpret_cast<const Quad<T>*>(at);
  Quad<float> values;
  BATON_UNROLL
  for (int i = 0; i < 4; ++i) values.lane[i] = load(&from.lane[i]);
  return values;
}
template <class T>
BATON_DEVICE void store_quad(T* at, const Quad<float>& values) {
  Quad<T> to;
  BATON_UNROLL
  for (int i = 0; i < 4; ++i) store(&to.lane[i], values.lane[i]);
  *reinterpret_cast<Quad<T>*>(at) = to;
}

/// Whether quads may be loaded there. A multiple of four elements further they may be, too.
template <class T>
bool takes_quads(const T* at) {
  return reinterpret_cast<std::uintptr_t>(at) % sizeof(Quad<T>) == 0;
}

/// NaN if either is.
BATON_DEVICE float largest(float a, float b) { return b > a || b != b ? b : a; }

struct Sum {
  template <class T>
  BATON_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
struct Largest {
  BATON_DEVICE float operator()(float a, float b) const { return largest(a, b); }
};

}  // namespace baton::transformer::cuda
