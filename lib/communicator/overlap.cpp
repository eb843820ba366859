#include "overlap.hpp"

#include <algorithm>
#include <functional>
#include <vector>

namespace baton::communicator {
namespace {

struct Bytes {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  bool operator==(const Bytes&) const = default;
};

const std::byte* place(const Buffers& of, std::size_t buffer, std::int64_t element) {
  return of.bases[buffer] + static_cast<std::size_t>(element) * of.element_bytes;
}

std::int64_t common(const Bytes& a, const Bytes& b) {
  return std::max<std::int64_t>(0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
}

/// From the first byte of any to the last.
Bytes extent(const Buffers& of) {
  Bytes all;
  for (std::size_t i = 0; i < of.sizes.size(); ++i) {
    if (of.sizes[i] == 0) continue;
    const Bytes one{place(of, i, 0), place(of, i, of.sizes[i])};
    all.begin = all.begin ? std::min(all.begin, one.begin) : one.begin;
    all.end = std::max(all.end, one.end);
  }
  return all;
}

/// Appends the memory of `count` elements from element `first` on. What touches is joined.
void append_memory(const Buffers& of, std::int64_t first, std::int64_t count,
                   std::vector<Bytes>& memory) {
  for (std::size_t i = 0; i < of.sizes.size() && count > 0; ++i) {
    const std::int64_t taken = std::min(of.sizes[i] - first, count);
    if (taken > 0) {
      const Bytes piece{place(of, i, first), place(of, i, first + taken)};
      if (!memory.empty() && memory.back().end == piece.begin)
        memory.back().end = piece.end;
      else
        memory.push_back(piece);
      count -= taken;
    }
    first = std::max<std::int64_t>(0, first - of.sizes[i]);
  }
}

/// In ascending order, joined where blocks touch or overlap.
std::vector<Bytes> memory_of(const PlacedBlocks& of) {
  std::vector<Bytes> blocks;
  std::int64_t end = 0;
  if (of.counts.empty())
    for (const std::int64_t size : of.buffers.sizes) end += size;
  append_memory(of.buffers, 0, end, blocks);
  for (std::size_t i = 0; i < of.counts.size(); ++i) {
    const std::int64_t offset = of.offsets.empty() ? end : of.offsets[i];
    end = offset + of.counts[i];
    append_memory(of.buffers, offset, of.counts[i], blocks);
  }
  std::ranges::sort(blocks, std::less<>(), &Bytes::begin);
  std::vector<Bytes> joined;
  for (const Bytes& block : blocks) {
    if (joined.empty() || joined.back().end < block.begin) {
      joined.push_back(block);
    } else {
      joined.back().end = std::max(joined.back().end, block.end);
    }
  }
  return joined;
}

}  // namespace

bool apart(const Buffers& a, const Buffers& b) { return common(extent(a), extent(b)) == 0; }

std::int64_t overlap(const PlacedBlocks& a, const PlacedBlocks& b) {
  const std::vector<Bytes> left = memory_of(a), right = memory_of(b);
  std::int64_t bytes = 0;
  for (std::size_t i = 0, k = 0; i < left.size() && k < right.size();
       left[i].end < right[k].end ? ++i : ++k)
    bytes += common(left[i], right[k]);
  return bytes;
}

bool same_memory(const Buffers& a, std::int64_t first_a, const Buffers& b, std::int64_t first_b,
                 std::int64_t count) {
  if (a.bases.size() == 1 && b.bases.size() == 1)
    return place(a, 0, first_a) == place(b, 0, first_b);
  std::vector<Bytes> left, right;
  append_memory(a, first_a, count, left);
  append_memory(b, first_b, count, right);
  return left == right;
}

}  // namespace baton::communicator
