#pragma once
/// Where data lies: a region names elements of one of a rank's buffers, without an address.

#include <cstdint>
#include <vector>

#pragma GCC visibility push(default)
namespace baton {

/// The buffers of one rank that a schedule speaks of.
///
/// `work` exists only while a schedule is being written (see ScheduleBuilder): it is the input
/// until a region is first written and the output from then on. A finished schedule never contains
/// it. `slot` is scratch that holds a message between its receive (or before its send) and the one
/// step that consumes (or produces) it; slots are handed out in turn, so their reuse bounds memory.
enum class Buffer : std::uint8_t { input, output, work, scratch, slot };

/// Elements of one buffer: `count` blocks of `block` elements, the i-th at `offset + i * stride`.
/// All units are elements. A contiguous region has count 1. Its elements have an order, the packed
/// order: block after block.
struct Region {
  Buffer buffer = Buffer::work;
  std::int64_t offset = 0;
  std::int64_t block = 0;
  std::int64_t count = 1;
  std::int64_t stride = 0;  ///< 0 if and only if count is 1

  std::int64_t length() const { return block * count; }    ///< elements
  bool empty() const { return block == 0 || count == 0; }  ///< no elements
  bool contiguous() const { return count == 1; }           ///< one block
  /// One past the last element that the region touches.
  std::int64_t end() const { return empty() ? offset : offset + (count - 1) * stride + block; }

  bool operator==(const Region&) const = default;
};

/// A list of regions, as one message may carry: their packed order is one after the other.
using Regions = std::vector<Region>;

/// The elements [offset, offset + length) of `buffer`.
inline Region contiguous(Buffer buffer, std::int64_t offset, std::int64_t length) {
  return {buffer, offset, length, 1, 0};
}

/// `count` blocks of `block` elements, `stride` apart; contiguous where the blocks touch.
inline Region strided(Buffer buffer, std::int64_t offset, std::int64_t block, std::int64_t count,
                      std::int64_t stride) {
  if (count == 1 || block == stride) return contiguous(buffer, offset, block * count);
  return {buffer, offset, block, count, stride};
}

/// Elements [first, first + length) of the region's packed order, `first + length <= length()`:
/// at most three regions (a partial block, whole blocks, a partial block), appended to `out`.
void append_slice(const Region& region, std::int64_t first, std::int64_t length, Regions& out);

/// How exactly overlap could be decided.
enum class Overlap : std::uint8_t { none, some, assumed };

/// Whether two regions share an element. Exact where the strides are equal or one region is
/// contiguous, and otherwise while one has at most a few thousand blocks; beyond that, touching
/// bounding boxes count as `assumed`.
Overlap overlap(const Region& a, const Region& b);

}  // namespace baton
#pragma GCC visibility pop
