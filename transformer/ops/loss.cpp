#include <fmt/core.h>

#include <cmath>

#include "baton/error.hpp"
#include "kernels.hpp"
#include "on_host.hpp"

namespace baton::transformer::ops {

template <class T>
double mse(View<const T> y, View<const std::type_identity_t<T>> target, double elements,
           View<std::type_identity_t<T>> dy) {
  const T* const values = y.rows().data();
  const T* const wanted = target.rows().data();
  double sum = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const double difference = static_cast<double>(values[i]) - static_cast<double>(wanted[i]);
    sum += difference * difference;
  }
  if (!dy.empty()) {
    T* const gradients = dy.rows().data();
    const auto scale = static_cast<T>(2 / elements);
    for (std::int64_t i = 0; i < y.size(); ++i) gradients[i] = (values[i] - wanted[i]) * scale;
  }
  return sum / elements;
}

template <class T>
double cross_entropy(View<const T> logits, View<const std::int32_t> targets, double elements,
                     View<std::type_identity_t<T>> dlogits) {
  const std::int64_t n = logits.extent(0), classes = logits.extent(1);
  const View<const T> rows = logits.rows();
  const auto& kernel = kernels<SoftmaxKernels<T>>();
  // If no gradient is wanted, exponentials go to a row that is used again.
  Array<T> unused = Array<T>::uninitialized({dlogits.empty() ? classes : 0});
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t target = targets(i);
    if (target < 0 || target >= classes) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("cross_entropy: expected a target within [0, {}), found {} at {}",
                              classes, target, i));
    }
    const T* const row = &rows(i, 0);
    T* const gradients = dlogits.empty() ? unused.data() : &dlogits(i, 0);
    const T largest = kernel.maximum(classes, row);
    const double own = static_cast<double>(row[target]) - static_cast<double>(largest);
    const T total = kernel.exponentials(classes, row, largest, gradients);
    sum += std::log(static_cast<double>(total)) - own;
    if (!dlogits.empty()) {
      kernel.scale(classes, static_cast<T>(1 / (static_cast<double>(total) * elements)), gradients);
      gradients[target] -= static_cast<T>(1 / elements);
    }
  }
  return sum / elements;
}

#define BATON_INSTANTIATE(T)                                          \
  template double mse(View<const T>, View<const T>, double, View<T>); \
  template double cross_entropy(View<const T>, View<const std::int32_t>, double, View<T>);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer::ops
