#include <algorithm>

#include "on_host.hpp"

namespace baton::transformer::ops {
namespace {

/// Calls body(i, row of the table) for the ids [n] that a table of `rows` from `first` on has.
template <class Body>
void each_here(View<const std::int32_t> ids, std::int64_t first, std::int64_t rows, Body body) {
  for (std::int64_t i = 0; i < ids.extent(0); ++i) {
    const std::int64_t row = ids(i) - first;
    if (row >= 0 && row < rows) body(i, row);
  }
}

}  // namespace

template <class T>
void embedding(View<const std::int32_t> ids, View<const std::type_identity_t<T>> table,
               std::int64_t first, View<T> y) {
  const View<T> rows = y.rows();
  std::fill_n(rows.data(), rows.size(), T(0));
  each_here(ids, first, table.extent(0), [&](std::int64_t i, std::int64_t row) {
    std::copy_n(&table(row, 0), table.extent(1), &rows(i, 0));
  });
}

template <class T>
void embedding_backward(View<const std::int32_t> ids, View<const std::type_identity_t<T>> dy,
                        std::int64_t first, View<T> dtable) {
  each_here(ids, first, dtable.extent(0), [&](std::int64_t i, std::int64_t row) {
    ops::add<T>(dy.select(0, i), dtable.select(0, row));
  });
}

#define BATON_INSTANTIATE(T)                                                               \
  template void embedding(View<const std::int32_t>, View<const T>, std::int64_t, View<T>); \
  template void embedding_backward(View<const std::int32_t>, View<const T>, std::int64_t, View<T>);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer::ops
