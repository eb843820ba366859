#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "../copy.hpp"

namespace baton::host {
namespace {

/// The size of the largest cache, or a usual value.
std::size_t cache_bytes() {
  std::size_t largest = 0;
  // Sysconf() adds up the separate caches of AMD's processors.
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) +
                       "/size");
    std::size_t kib = 0;
    char unit = 0;
    if (file >> kib >> unit && unit == 'K') largest = std::max(largest, kib << 10);
  }
  return largest > 0 ? largest : std::size_t{32} << 20;
}

/// The unit in which a core writes to memory.
constexpr std::size_t line_bytes = 64;

/// Copies whole lines of `into`; returns the bytes copied.
std::size_t stream_lines(std::byte* into, const std::byte* from, std::size_t bytes) {
  std::size_t done = 0;
#ifdef __SSE2__
  for (; done + line_bytes <= bytes; done += line_bytes) {
    __m128i line[line_bytes / sizeof(__m128i)];
    std::memcpy(line, from + done, line_bytes);
    auto* const target = reinterpret_cast<__m128i*>(into + done);
    for (std::size_t i = 0; i < std::size(line); ++i) _mm_stream_si128(target + i, line[i]);
  }
  _mm_sfence();
#else
  static_cast<void>(into), static_cast<void>(from), static_cast<void>(bytes);
#endif
  return done;
}

}  // namespace

std::size_t share_of_cache() {
  static const std::size_t share = std::max(cache_bytes() / 8, little);
  return share;
}

void copy_past_cache(void* into, const void* from, std::size_t bytes) {
  auto* const to = static_cast<std::byte*>(into);
  const auto* const source = static_cast<const std::byte*>(from);
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(to) % line_bytes;
  const std::size_t head = std::min(offset == 0 ? 0 : line_bytes - offset, bytes);
  std::memcpy(to, source, head);
  const std::size_t done = head + stream_lines(to + head, source + head, bytes - head);
  std::memcpy(to + done, source + done, bytes - done);
}

}  // namespace baton::host
