#pragma once
/// Messages beyond 2 GiB, for any transport.

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "baton/communicator.hpp"

namespace support::large {

/// Broadcasts 2.2 GiB of bytes from rank 0 of two ranks, uncut.
inline void broadcast(baton::Communicator& c) {
  constexpr std::int64_t words = std::int64_t{295'000'007}, bytes = 8 * words - 3;
  static_assert(bytes > std::int64_t{1} << 31);
  const auto release = [](void* block) { std::free(block); };
  const std::unique_ptr<void, decltype(release)> block(std::malloc(8 * words), release);
  REQUIRE((block != nullptr));
  auto* data = static_cast<std::uint64_t*>(block.get());
  const auto expected = [](std::int64_t i) {
    return static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u;
  };
  if (c.rank() == 0) {
    for (std::int64_t i = 0; i < words; ++i) data[i] = expected(i);
  } else {
    data[words - 1] = 0;
  }
  c.broadcast({block.get(), bytes, baton::Datatype::u8}, 0, {"binomial", 0});
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i + 1 < words; ++i) wrong += data[i] == expected(i) ? 0 : 1;
  CHECK(wrong == 0);
  const std::uint64_t tail = c.rank() == 0 ? ~std::uint64_t{0} : 0xff'ffff'ffffu;  // 5 bytes came
  CHECK(data[words - 1] == (expected(words - 1) & tail));
}

}  // namespace support::large
