#pragma once
/// Copies in the host's memory, around the cache where it would not keep them.

#include <cstddef>
#include <cstring>

namespace baton::host {

/// Bytes that any cache keeps.
constexpr std::size_t little = 1 << 20;
/// An eighth of the largest cache, but no less than `little`.
std::size_t share_of_cache();
/// Whether the cache would not keep so many bytes of each rank that shares it.
inline bool outgrows_cache(std::size_t bytes) {
  return bytes >= little && bytes >= share_of_cache();
}
/// As memcpy, around the cache: the memory that is written to is not read first, and nothing else
/// leaves the cache for it.
void copy_past_cache(void* into, const void* from, std::size_t bytes);
/// As memcpy, by the better way.
inline void copy(void* into, const void* from, std::size_t bytes) {
  if (!outgrows_cache(bytes)) [[likely]] {
    std::memcpy(into, from, bytes);
  } else {
    copy_past_cache(into, from, bytes);
  }
}

}  // namespace baton::host
