#include <fmt/core.h>

#include <cmath>

#include "baton/error.hpp"
#include "baton/simulate.hpp"

namespace baton {

TimeTable::TimeTable(std::vector<Point> points) : points_(std::move(points)) {
  Point before{-1, 0};
  for (const Point& point : points_) {
    if (point.bytes <= before.bytes || !(point.ns >= before.ns) || !std::isfinite(point.ns)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("expected more than {} bytes and at least {} ns, found {} and {}",
                              before.bytes, before.ns, point.bytes, point.ns));
    }
    before = point;
  }
}

TimeTable TimeTable::line(double start, double per_byte) {
  constexpr std::int64_t far = 1 << 30;
  return TimeTable({{0, start}, {far, start + per_byte * static_cast<double>(far)}});
}

std::int64_t TimeTable::of(std::int64_t bytes) const {
  if (points_.empty()) return 0;
  Point from{}, to = points_.front();
  for (std::size_t i = 1; i < points_.size() && to.bytes < bytes; ++i) {
    from = to;
    to = points_[i];
  }
  if (to.bytes == 0) return std::llround(to.ns);  // the only point, or 0 bytes
  const double share =
      static_cast<double>(bytes - from.bytes) / static_cast<double>(to.bytes - from.bytes);
  return std::llround(from.ns + share * (to.ns - from.ns));
}

}  // namespace baton
