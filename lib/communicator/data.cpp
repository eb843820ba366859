#include "baton/data.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "../base/raise.hpp"

namespace baton {

Shape::Shape(std::span<const std::int64_t> extents) {
  if (extents.size() > max_rank) {
    base::refuse("expected a tensor of rank 0 to {}, found rank {}", max_rank, extents.size());
  }
  for (const std::int64_t extent : extents) {
    if (extent < 0) {
      base::refuse("expected extents of at least 0, found [{}]", fmt::join(extents, ", "));
    }
  }
  std::copy(extents.begin(), extents.end(), extents_.begin());
  rank_ = static_cast<int>(extents.size());
}

std::int64_t Shape::product(int first, int last) const {
  std::int64_t product = 1;
  for (int d = first; d < last; ++d) product *= (*this)[d];
  return product;
}

std::int64_t Shape::elements() const { return product(0, rank_); }

Shape Shape::with(int dimension, std::int64_t extent) const {
  Shape shape = *this;
  shape.extents_[static_cast<std::size_t>(dimension)] = extent;
  return shape;
}

std::string Shape::text() const {
  return fmt::format("[{}]", fmt::join(extents_.begin(), extents_.begin() + rank_, ", "));
}

}  // namespace baton
