#pragma once
/// Elements of f32 and bf16, taken as f32, one or four at a time; host and device.

#include <cmath>
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

/// The same of `count` elements, at most four: at once if `whole`, and zeros behind them.
template <class T>
BATON_DEVICE Quad<float> load_some(const T* at, bool whole, std::int64_t count) {
  if (whole) return load_quad(at);
  Quad<float> values{};
  BATON_UNROLL
  for (int i = 0; i < 4; ++i)
    if (i < count) values.lane[i] = load(at + i);
  return values;
}
template <class T>
BATON_DEVICE void store_some(T* at, bool whole, std::int64_t count, const Quad<float>& values) {
  if (whole) return store_quad(at, values);
  BATON_UNROLL
  for (int i = 0; i < 4; ++i)
    if (i < count) store(at + i, values.lane[i]);
}

/// Whether quads may be loaded there. A multiple of four elements further they may be, too.
template <class T>
bool takes_quads(const T* at) {
  return reinterpret_cast<std::uintptr_t>(at) % sizeof(Quad<T>) == 0;
}

/// The same of all rows of n elements that begin there.
template <class... T>
bool rows_take_quads(std::int64_t n, const T*... at) {
  return n % 4 == 0 && (takes_quads(at) && ...);
}

/// NaN if either is.
BATON_DEVICE float largest(float a, float b) { return b > a || b != b ? b : a; }

/// 2 to the power of x, and 1 / x, by the device's approximations.
BATON_DEVICE float power_of_two(float x) {
#ifdef __CUDA_ARCH__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return std::exp2(x);
#endif
}
BATON_DEVICE float reciprocal(float x) {
#ifdef __CUDA_ARCH__
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1 / x;
#endif
}
inline constexpr float log2_of_e = 1.44269504f;

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
