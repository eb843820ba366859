#include "tensor.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <new>

#include "baton/error.hpp"
#include "shape_guard.hpp"

namespace baton::transformer {
namespace detail {
namespace {
[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}
}  // namespace

void refuse_index(const Shape& shape, int dim, std::int64_t index) {
  refuse(fmt::format("expected an index within dimension {} of {}, found {}", dim, shape.text(),
                     index));
}
void refuse_slice(const Shape& shape, int dim, std::int64_t begin, std::int64_t end) {
  refuse(fmt::format("expected a slice within dimension {} of {}, found [{}, {})", dim,
                     shape.text(), begin, end));
}
void refuse_reshape(const Shape& from, const Shape& to, bool contiguous) {
  if (!contiguous)
    refuse(fmt::format("expected contiguous elements to reshape {} to {}, found strides",
                       from.text(), to.text()));
  refuse(fmt::format("expected a shape of {} elements like {}, found {}", from.elements(),
                     from.text(), to.text()));
}
void refuse_dim(const Shape& shape, int dim) {
  refuse(fmt::format("expected a dimension of {}, found {}", shape.text(), dim));
}

std::shared_ptr<void> aligned_bytes(std::size_t bytes) {
  constexpr std::size_t line = 64;
  void* const data =
      std::aligned_alloc(line, (std::max<std::size_t>(bytes, 1) + line - 1) / line * line);
  if (!data) throw std::bad_alloc();
  return {data, std::free};
}

}  // namespace detail

template <class T>
void assign(View<const std::type_identity_t<T>> from, View<T> to) {
  expect_shape("assign", from.shape(), to.shape());
  if (from.contiguous() && to.contiguous()) {
    std::copy_n(from.data(), from.size(), to.data());
    return;
  }
  if (from.rank() == 1) {
    for (std::int64_t i = 0; i < from.extent(0); ++i) to(i) = from(i);
    return;
  }
  for (std::int64_t i = 0; i < from.extent(0); ++i) assign<T>(from.select(0, i), to.select(0, i));
}

template void assign(View<const float>, View<float>);
template void assign(View<const double>, View<double>);
template void assign(View<const std::int32_t>, View<std::int32_t>);

}  // namespace baton::transformer
