#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "memory/copy.hpp"

using namespace baton;

namespace {

using Copy = void (*)(void*, const void*, std::size_t);

/// Whether `bytes` from one address lie at another, and nothing about them has changed.
bool copies(Copy copy, std::size_t bytes, std::size_t to, std::size_t from) {
  constexpr std::size_t room = 128;
  std::vector<unsigned char> source(bytes + room), target(bytes + room, 0xee);
  for (std::size_t i = 0; i < source.size(); ++i)
    source[i] = static_cast<unsigned char>(i * 31 + i / 251);
  std::vector<unsigned char> expected = target;
  std::memcpy(expected.data() + to, source.data() + from, bytes);
  copy(target.data() + to, source.data() + from, bytes);
  return target == expected;
}

}  // namespace

TEST_CASE("around the cache goes every byte and no other, from anywhere to anywhere") {
  for (const std::size_t bytes : {0, 1, 15, 16, 63, 64, 65, 127, 128, 129, 1000, 4096})
    for (const std::size_t to : {0, 1, 8, 16, 33, 63, 64})
      for (const std::size_t from : {0, 1, 16, 63}) {
        CAPTURE(bytes);
        CAPTURE(to);
        CAPTURE(from);
        CHECK(copies(host::copy_past_cache, bytes, to, from));
      }
}

TEST_CASE("a copy is one whether the cache would keep it or not") {
  std::size_t large = 1 << 10;
  while (!host::outgrows_cache(large)) large *= 2;
  CHECK(!host::outgrows_cache(64 << 10));
  CHECK(copies(host::copy, large / 2 - 1, 3, 5));
  CHECK(copies(host::copy, large + 1, 3, 5));
  constexpr Copy of_a_large_one = [](void* into, const void* from, std::size_t bytes) {
    host::copy(into, from, bytes, true);
  };
  for (const std::size_t bytes : {0, 1, 511, 512, 513, 2048})
    CHECK(copies(of_a_large_one, bytes, 3, 5));
}
