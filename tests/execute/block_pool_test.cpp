#include "base/block_pool.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <set>

using namespace baton;
using namespace baton::base;

TEST_CASE("blocks are aligned, apart and large enough") {
  BlockPool pool;
  CHECK(pool.take(0) == nullptr);
  pool.give(nullptr, 0);
  std::vector<std::pair<std::byte*, std::size_t>> taken;
  for (const std::size_t bytes : {1u, 63u, 64u, 65u, 1000u, 1024u, 100'000u}) {
    std::byte* block = pool.take(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
    std::memset(block, static_cast<int>(taken.size() + 1), bytes);
    taken.emplace_back(block, bytes);
  }
  for (std::size_t i = 0; i < taken.size(); ++i) {
    for (std::size_t k = 0; k < taken[i].second; ++k) {
      REQUIRE(taken[i].first[k] == static_cast<std::byte>(i + 1));
    }
    pool.give(taken[i].first, taken[i].second);
  }
}

TEST_CASE("what was given back is taken again, by its size class") {
  BlockPool pool;
  std::byte* block = pool.take(1000);
  pool.give(block, 1000);
  CHECK(pool.take(600) == block);
  std::byte* second = pool.take(1024);
  CHECK(second != block);
  pool.give(second, 1024);
  pool.give(block, 600);
  const std::set<std::byte*> both{pool.take(1000), pool.take(1000)};
  CHECK(both == std::set<std::byte*>{block, second});
  std::byte* smaller = pool.take(512);
  CHECK(smaller != block);
  pool.give(smaller, 512);
  for (std::byte* b : both) pool.give(b, 1000);
}
