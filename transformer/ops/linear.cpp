#include <algorithm>

#include "blas.hpp"
#include "on_host.hpp"

namespace baton::transformer::ops {
namespace {

/// Summands and outputs of a panel of dweight. BLAS cuts sums likewise, so that little is lost.
constexpr std::int64_t panel_rows = 384, panel_outputs = 1024;

}  // namespace

template <class T>
void add_to_rows(View<const std::type_identity_t<T>> bias, View<T> y) {
  const View<T> rows = y.rows();
  for (std::int64_t row = 0; row < rows.extent(0); ++row) ops::add<T>(bias, rows.select(0, row));
}

// Few at a time, so that rounding errors grow with their number's root.
template <class T>
void add_rows(View<const std::type_identity_t<T>> x, View<T> sum) {
  constexpr std::int64_t together = 64;
  const View<const T> rows = x.rows();
  const std::int64_t n = rows.extent(1);
  Array<T> partial({n});
  for (std::int64_t begin = 0; begin < rows.extent(0); begin += together) {
    const std::int64_t end = std::min(begin + together, rows.extent(0));
    std::copy_n(rows.select(0, begin).data(), n, partial.data());
    for (std::int64_t row = begin + 1; row < end; ++row)
      ops::add<T>(rows.select(0, row), partial.view());
    ops::add<T>(partial, sum);
  }
}

template <class T>
void linear(View<const std::type_identity_t<T>> x, View<const std::type_identity_t<T>> weight,
            View<const std::type_identity_t<T>> bias, View<T> y) {
  const View<T> rows = y.rows();
  if (!bias.empty()) {
    for (std::int64_t row = 0; row < rows.extent(0); ++row)
      std::copy_n(bias.data(), bias.size(), rows.data() + row * bias.size());
  }
  multiply<T>(1, x.rows(), weight.transposed(0, 1), bias.empty() ? 0 : 1, rows);
}

// Row by row, while caches have it.
template <class T>
void linear_activate(Activation f, View<const std::type_identity_t<T>> x,
                     View<const std::type_identity_t<T>> weight,
                     View<const std::type_identity_t<T>> bias, View<T> pre, View<T> y) {
  const View<T> sums = pre.rows(), results = y.rows();
  multiply<T>(1, x.rows(), weight.transposed(0, 1), 0, sums);
  for (std::int64_t row = 0; row < sums.extent(0); ++row) {
    if (!bias.empty()) ops::add<T>(bias, sums.select(0, row));
    ops::activate<T>(f, sums.select(0, row), results.select(0, row));
  }
}

template <class T>
void linear_backward_input(View<const std::type_identity_t<T>> dy,
                           View<const std::type_identity_t<T>> weight, View<T> dx, bool add) {
  multiply<T>(1, dy.rows(), weight, add ? 1 : 0, dx.rows());
}

template <class T>
void linear_backward_weight(View<const std::type_identity_t<T>> x,
                            View<const std::type_identity_t<T>> dy, View<T> dweight, View<T> dbias,
                            const Meanwhile& meanwhile) {
  const View<const T> dy_rows = dy.rows(), x_rows = x.rows();
  if (!dbias.empty()) ops::add_rows<T>(dy_rows, dbias);
  if (!meanwhile) {
    multiply<T>(1, dy_rows.transposed(0, 1), x_rows, 1, dweight);
    return;
  }
  const std::int64_t rows = dy_rows.extent(0), outputs = dweight.extent(0);
  for (std::int64_t row = 0; row < rows; row += panel_rows) {
    const std::int64_t row_end = std::min(row + panel_rows, rows);
    for (std::int64_t out = 0; out < outputs; out += panel_outputs) {
      const std::int64_t out_end = std::min(out + panel_outputs, outputs);
      multiply<T>(1, dy_rows.slice(0, row, row_end).slice(1, out, out_end).transposed(0, 1),
                  x_rows.slice(0, row, row_end), 1, dweight.slice(0, out, out_end));
      meanwhile();
    }
  }
}

#define BATON_INSTANTIATE(T)                                                                      \
  template void add_to_rows(View<const T>, View<T>);                                              \
  template void add_rows(View<const T>, View<T>);                                                 \
  template void linear(View<const T>, View<const T>, View<const T>, View<T>);                     \
  template void linear_activate(Activation, View<const T>, View<const T>, View<const T>, View<T>, \
                                View<T>);                                                         \
  template void linear_backward_input(View<const T>, View<const T>, View<T>, bool);               \
  template void linear_backward_weight(View<const T>, View<const T>, View<T>, View<T>,            \
                                       const Meanwhile&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer::ops
