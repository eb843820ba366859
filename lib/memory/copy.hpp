#pragma once
/// Copies in the host's memory; large ones bypass the cache.

#include <cstddef>
#include <cstring>

namespace baton::host {

/// Bytes that fit any cache.
constexpr std::size_t little = 1 << 20;
/// An eighth of the largest cache, at least `little`.
std::size_t share_of_cache();
/// Whether a rank's share of the cache is too small for so many bytes.
inline bool outgrows_cache(std::size_t bytes) {
  return bytes >= little && bytes >= share_of_cache();
}
/// memcpy that bypasses the cache: it does not first read the memory that it writes, and displaces
/// no other data.
void copy_past_cache(void* into, const void* from, std::size_t bytes);
/// Memcpy by the faster of both ways; `outgrows`: this is part of a copy that outgrows the cache.
inline void copy(void* into, const void* from, std::size_t bytes, bool outgrows) {
  constexpr std::size_t least = 512;  // shorter ones write too few whole lines
  if (!outgrows || bytes < least) [[likely]] {
    std::memcpy(into, from, bytes);
  } else {
    copy_past_cache(into, from, bytes);
  }
}
inline void copy(void* into, const void* from, std::size_t bytes) {
  copy(into, from, bytes, outgrows_cache(bytes));
}

}  // namespace baton::host
