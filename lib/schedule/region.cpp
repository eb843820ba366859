#include "baton/schedule/region.hpp"

#include <algorithm>

namespace baton {
namespace {

/// Regions with more blocks than this are not taken apart to decide overlap.
constexpr std::int64_t most_blocks = 4096;

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

/// Whether blocks of two regions meet when both are `stride` apart: block i of a and block j of b
/// overlap if and only if b - a - |a| < (i - j) * stride < b - a + |b|.
bool meet(const Region& a, const Region& b, std::int64_t stride) {
  const std::int64_t distance = b.offset - a.offset;
  const std::int64_t k =
      std::min(floor_divide(distance + b.block - 1, stride), a.count - 1);  // the largest i - j
  return k >= 1 - b.count && k * stride > distance - a.block;
}

bool blocks_meet(const Region& few, const Region& many) {
  for (std::int64_t i = 0; i < few.count; ++i) {
    const Region block = contiguous(few.buffer, few.offset + i * few.stride, few.block);
    if (meet(block, many, many.stride)) return true;
  }
  return false;
}

}  // namespace

void append_slice(const Region& region, std::int64_t first, std::int64_t length, Regions& out) {
  if (length == 0) return;
  if (region.contiguous()) {
    out.push_back(contiguous(region.buffer, region.offset + first, length));
    return;
  }
  std::int64_t row = first / region.block;
  if (const std::int64_t inside = first % region.block; inside != 0 || length < region.block) {
    const std::int64_t part = std::min(region.block - inside, length);
    out.push_back(contiguous(region.buffer, region.offset + row * region.stride + inside, part));
    length -= part;
    ++row;
  }
  if (const std::int64_t whole = length / region.block; whole > 0) {
    out.push_back(strided(region.buffer, region.offset + row * region.stride, region.block, whole,
                          region.stride));
    row += whole;
    length -= whole * region.block;
  }
  if (length > 0) {
    out.push_back(contiguous(region.buffer, region.offset + row * region.stride, length));
  }
}

Overlap overlap(const Region& a, const Region& b) {
  if (a.buffer != b.buffer || a.empty() || b.empty()) return Overlap::none;
  if (a.offset >= b.end() || b.offset >= a.end()) return Overlap::none;
  if (a.contiguous() && b.contiguous()) return Overlap::some;
  if (a.contiguous() || b.contiguous() || a.stride == b.stride) {
    return meet(a, b, std::max(a.stride, b.stride)) ? Overlap::some : Overlap::none;
  }
  const Region& few = a.count <= b.count ? a : b;
  const Region& many = a.count <= b.count ? b : a;
  if (few.count > most_blocks) return Overlap::assumed;
  return blocks_meet(few, many) ? Overlap::some : Overlap::none;
}

}  // namespace baton
