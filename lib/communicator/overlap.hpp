#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace baton::communicator {

/// Buffers laid end to end.
struct Buffers {
  std::span<std::byte* const> bases;
  std::span<const std::int64_t> sizes;  ///< elements
  std::size_t element_bytes;
};

/// Blocks of them: `counts` elements each, end to end or at `offsets`. Without counts, all
/// elements.
struct PlacedBlocks {
  const Buffers& buffers;
  std::span<const std::int64_t> counts, offsets;
};

/// Whether all of one lies before or behind the other. Allocates nothing.
bool apart(const Buffers& a, const Buffers& b);
/// The bytes that are in blocks of both.
std::int64_t overlap(const PlacedBlocks& a, const PlacedBlocks& b);
/// Whether `count` elements from the given ones on are the same memory in the same order. Allocates
/// nothing where each is one buffer.
bool same_memory(const Buffers& a, std::int64_t first_a, const Buffers& b, std::int64_t first_b,
                 std::int64_t count);

}  // namespace baton::communicator
