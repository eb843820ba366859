#pragma once
/// Loops over rows, compiled for each instruction set: kernels<K>() are those for this processor.
/// Each group is defined in the file of the operation that it belongs to.

#include <cstdint>

namespace baton::transformer::ops {

template <class T>
struct LayerNormKernels {
  /// y [n] of x [n]; stats [2] = mean and 1 / deviation.
  void (*forward)(std::int64_t n, const T* x, const T* weight, const T* bias, T epsilon, T* y,
                  T* stats);
  /// dx [n]; dweight and dbias [n] are added to.
  void (*backward)(std::int64_t n, const T* dy, const T* x, const T* weight, const T* stats, T* dx,
                   T* dweight, T* dbias);
};

template <class T>
struct ActivationKernels {
  /// Of each Activation.
  void (*forward[3])(std::int64_t n, const T* x, T* y);
  void (*backward[3])(std::int64_t n, const T* dy, const T* x, T* dx);
};

template <class T>
struct SoftmaxKernels {
  T (*maximum)(std::int64_t n, const T* x);
  /// y = exp(x - shift), and their sum. x may be y; what is not a number stays so.
  T (*exponentials)(std::int64_t n, const T* x, T shift, T* y);
  T (*dot)(std::int64_t n, const T* x, const T* y);
  /// y *= factor.
  void (*scale)(std::int64_t n, T factor, T* y);
  /// y *= x.
  void (*times)(std::int64_t n, const T* x, T* y);
  /// Of scores, from probabilities p and their gradients: y = p · (y - shift) · factor.
  void (*backward)(std::int64_t n, const T* p, T shift, T factor, T* y);
};

/// c = factor · a · b, or that added to c. Rows of b and c are contiguous, a's elements anywhere:
/// strides in elements.
template <class T>
struct Product {
  std::int64_t rows, columns, inner;
  T factor;
  const T* a;
  std::int64_t a_row, a_column;
  const T* b;
  std::int64_t b_row;
  bool add;
  T* c;
  std::int64_t c_row;
};

template <class T>
struct ProductKernels {
  void (*product)(const Product<T>& product);
};

template <class Kernels>
const Kernels& kernels();

/// Defines kernels() of a group by the functions f32_kernels() and f64_kernels() of each
/// instruction set.
#define BATON_DISPATCH(Kernels)                 \
  HWY_EXPORT(f32_kernels);                      \
  HWY_EXPORT(f64_kernels);                      \
  template <>                                   \
  const Kernels<float>& kernels() {             \
    return HWY_DYNAMIC_DISPATCH(f32_kernels)(); \
  }                                             \
  template <>                                   \
  const Kernels<double>& kernels() {            \
    return HWY_DYNAMIC_DISPATCH(f64_kernels)(); \
  }

}  // namespace baton::transformer::ops
