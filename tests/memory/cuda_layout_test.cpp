/// How pieces become jobs; no CUDA.

#include "memory/cuda/layout.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <vector>

using namespace baton;
using namespace baton::cuda;

namespace {

std::byte* at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }
std::byte* byte_at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

template <int operands>
std::vector<Sheet<operands>> sheets(const std::vector<Rows>& list, std::int64_t element_bytes) {
  std::vector<Sheet<operands>> found;
  std::span<const Rows> rest = list;
  for (skip_empty(rest); !rest.empty(); skip_empty(rest))
    found.push_back(take_sheet<operands>(rest, element_bytes));
  return found;
}

/// All jobs of all launches.
template <int operands>
std::vector<Strided<operands>> jobs(const std::vector<Rows>& list, std::int64_t element_bytes,
                                    std::uint32_t widths) {
  std::vector<Strided<operands>> found;
  for_batches<operands>(list, static_cast<std::size_t>(element_bytes), widths, [&](auto& batch) {
    found.insert(found.end(), batch.jobs, batch.jobs + batch.count);
  });
  return found;
}

constexpr std::uint32_t all = copy_widths;

}  // namespace

TEST_CASE("division by a known number is exact below 2^31") {
  constexpr std::uint32_t top = (1u << 31) - 1;
  std::mt19937 generator(1);
  std::vector<std::uint32_t> divisors{top, top - 1, 1u << 30, (1u << 30) + 1};
  for (std::uint32_t d = 1; d < 1100; ++d) divisors.push_back(d);
  for (int i = 0; i < 1000; ++i) divisors.push_back(generator() % top + 1);
  int wrong = 0;
  for (const std::uint32_t d : divisors) {
    const Divider divider(d);
    std::vector<std::uint32_t> numbers{0, 1, d - 1, d, top, top - 1, top / d * d, top / d * d - 1};
    for (int i = 0; i < 50; ++i) numbers.push_back(generator() & top);
    for (int i = 0; i < 50; ++i) numbers.push_back((generator() & top) / d * d);
    for (const std::uint32_t n : numbers) wrong += divider.quotient(n) != n / d;
  }
  CHECK(wrong == 0);
}

TEST_CASE("blocks that touch become one") {
  const auto found =
      sheets<2>({{.at = {at(0x1000), at(0x9000)}, .stride = {40, 40}, .block = 10, .rows = 3}}, 4);
  REQUIRE(found.size() == 1);
  CHECK(found[0] == Sheet<2>{{byte_at(0x1000), byte_at(0x9000)}, {0, 0}, {0, 0}, 120, 1, 1});
  CHECK(found[0].contiguous());
}

TEST_CASE("pieces at equal distances are one sheet, others are not") {
  // Columns of a matrix, packed one behind the other: what an all-to-all sends.
  std::vector<Rows> list;
  for (std::uintptr_t j = 0; j < 5; ++j) {
    list.push_back({.at = {at(0x1000 + j * 256), at(0x9000 + j * 16)},
                    .stride = {16, 80},
                    .block = 4,
                    .rows = 16});
  }
  auto found = sheets<2>(list, 4);
  REQUIRE(found.size() == 1);
  CHECK(found[0] == Sheet<2>{{byte_at(0x1000), byte_at(0x9000)}, {16, 80}, {256, 16}, 16, 16, 5});

  list[3].at[0] = at(0x8000);  // breaks the first operand's regularity
  found = sheets<2>(list, 4);  // and the last two are a sheet, as any two are
  REQUIRE(found.size() == 2);
  CHECK(found[0].outer == 3);
  list[3].at[0] = at(0x1000 + 3 * 256);
  list[4].rows = 15;
  CHECK(sheets<2>(list, 4).size() == 2);
  list[4].rows = 16;
  list[4].stride[1] = 96;
  CHECK(sheets<2>(list, 4).size() == 2);
}

TEST_CASE("columns side by side in all operands are wider blocks") {
  std::vector<Rows> list;
  for (std::uintptr_t j = 0; j < 4; ++j) {
    list.push_back({.at = {at(0x1000 + j * 8), at(0x9000 + j * 8)},
                    .stride = {100, 200},
                    .block = 2,
                    .rows = 7});
  }
  const auto found = sheets<2>(list, 4);
  REQUIRE(found.size() == 1);
  CHECK(found[0] == Sheet<2>{{byte_at(0x1000), byte_at(0x9000)}, {100, 200}, {0, 0}, 32, 7, 1});
}

TEST_CASE("pieces without elements are left out") {
  const Rows empty{.at = {at(1), at(1)}, .block = 0, .rows = 5},
      none{.at = {at(1), at(1)}, .block = 5, .rows = 0},
      one{.at = {at(0x1000), at(0x2000)}, .block = 5};
  CHECK(sheets<2>({empty, none}, 4).empty());
  CHECK(sheets<2>({empty, one, none, empty}, 4).size() == 1);
  CHECK(jobs<2>({empty, none}, 4, all).empty());
}

TEST_CASE("vectors are as wide as addresses, strides and blocks allow") {
  const auto width = [](std::uintptr_t into, std::uintptr_t from, std::int64_t stride,
                        std::int64_t block) {
    return width_of(Sheet<2>{{byte_at(into), byte_at(from)}, {stride, 64}, {0, 0}, block, 4, 1},
                    all);
  };
  CHECK(width(0x1000, 0x2000, 64, 32) == 16);
  CHECK(width(0x1008, 0x2000, 64, 32) == 8);
  CHECK(width(0x1000, 0x2004, 64, 32) == 4);
  CHECK(width(0x1000, 0x2000, 66, 32) == 2);
  CHECK(width(0x1000, 0x2000, 64, 31) == 1);
  CHECK(width(0x1000, 0x2000, -48, 32) == 16);
  // Folds of f16 know 16, 4 and 2.
  CHECK(width_of(Sheet<1>{{byte_at(0x1008)}, {0}, {0}, 64, 1, 1}, widths_for(2)) == 4);
  CHECK(fold_widths(OpKind::sum, Datatype::f64) == (16 | 8));
  CHECK(fold_widths(OpKind::sum, Datatype::f32) == (16 | 4));
  CHECK(fold_widths(OpKind::bit_xor, Datatype::u64) == (16 | 4 | 1));
}

TEST_CASE("operands that start misaligned alike are peeled to 16 bytes") {
  const auto found =
      jobs<3>({{.at = {at(0x1004), at(0x2004), at(0x3004)}, .block = 1001}}, 4, widths_for(4));
  REQUIRE(found.size() == 3);
  CHECK(found[0].width == 16);
  CHECK(found[0].at[1] == byte_at(0x2010));
  CHECK(found[0].vectors == (4004 - 12) / 16);
  CHECK(found[1].width == 4);
  CHECK(found[1].at[0] == byte_at(0x1004));
  CHECK(found[1].vectors == 3);
  CHECK(found[2].at[2] == byte_at(0x3010 + (4004 - 12) / 16 * 16));
  CHECK(found[2].vectors == (4004 - 12) % 16 / 4);
}

TEST_CASE("operands that start misaligned differently are not, nor are short blocks") {
  auto found =
      jobs<3>({{.at = {at(0x1004), at(0x2008), at(0x3004)}, .block = 1001}}, 4, widths_for(4));
  REQUIRE(found.size() == 1);
  CHECK(found[0].width == 4);
  found = jobs<3>({{.at = {at(0x1004), at(0x2004), at(0x3004)}, .block = 20}}, 4, widths_for(4));
  REQUIRE(found.size() == 1);
  CHECK(found[0].width == 4);
}

TEST_CASE("rows are peeled together") {
  const auto found = jobs<2>(
      {{.at = {at(0x1002), at(0x2002)}, .stride = {1024, 2048}, .block = 300, .rows = 6}}, 2, all);
  REQUIRE(found.size() == 3);
  CHECK(found[0].columns.divisor() == (600 - 14) / 16);
  CHECK(found[0].rows.divisor() == 6);
  CHECK(found[1].vectors == 6 * 7);
  CHECK(found[1].row_stride[1] == 2048);
  CHECK(found[0].vectors * 16 + found[1].vectors * found[1].width +
            found[2].vectors * found[2].width ==
        6 * 600);
}

TEST_CASE("what is too large for one job is cut, and nothing is lost") {
  struct Case {
    std::int64_t block, rows, pieces, stride;
  };
  constexpr std::int64_t tera = std::int64_t{1} << 40;
  for (const auto& [block, rows, pieces, stride] :
       {Case{tera, 1, 1, 0}, Case{tera + 1, 1, 1, 0}, Case{3, tera, 1, 5}, Case{1, tera / 64, 3, 7},
        Case{tera / 16, 3, 2, tera / 8}}) {
    std::vector<Rows> list;
    for (std::int64_t i = 0; i < pieces; ++i) {
      const auto first = static_cast<std::uintptr_t>(0x1000 + i * rows * (stride + 9) * 2);
      list.push_back(
          {.at = {at(first), at(first)}, .stride = {stride, stride}, .block = block, .rows = rows});
    }
    std::int64_t bytes = 0, wrong = 0;
    std::byte* end = nullptr;
    for (const auto& job : jobs<2>(list, 1, all)) {
      wrong += job.vectors > most_vectors || job.vectors == 0;
      wrong += job.vectors % (job.columns.divisor() * job.rows.divisor()) != 0;
      bytes += std::int64_t{job.vectors} * job.width;
      end = std::max(end, job.address(job.vectors - 1, 0) + job.width);
    }
    CHECK(wrong == 0);
    CHECK(bytes == block * rows * pieces);
    CHECK(end == static_cast<std::byte*>(list.back().at[0]) + (rows - 1) * stride + block);
  }
}

TEST_CASE("a launch takes as many jobs as its parameters hold, and finds each unit's") {
  std::vector<Rows> list;
  for (std::uintptr_t i = 0; i < 100; ++i) {  // at unequal distances, of unequal length
    list.push_back({.at = {at(0x100000 + i * i * 0x10000), at(0x100000 + i * 0x30000)},
                    .block = static_cast<std::int64_t>(16 + 16384 * (i % 3))});
  }
  std::vector<std::uint32_t> counts;
  int wrong = 0;
  for_batches<2>(list, 1, all, [&](auto& batch) {
    counts.push_back(batch.count);
    std::uint32_t unit = 0;
    for (std::uint32_t j = 0; j < batch.count; ++j) {
      for (std::uint32_t i = 0; i < batch.jobs[j].units(); ++i, ++unit)
        wrong += &batch.job_of(unit) != &batch.jobs[j];
    }
    wrong += unit != batch.units;
  });
  CHECK(wrong == 0);
  constexpr std::uint32_t capacity = Batch<Strided<2>>::capacity;
  CHECK(capacity >= 40);
  CHECK(sizeof(Batch<Strided<2>>) <= 4096);
  CHECK(sizeof(Batch<Tiles>) <= 4096);
  REQUIRE(counts.size() == (100 + capacity - 1) / capacity);
  CHECK(counts.front() == capacity);
}

TEST_CASE("small cells that turn go by tiles, whichever side is packed") {
  const auto sheet = [](std::int64_t cell, std::int64_t columns, std::int64_t rows) {
    return Sheet<2>{{byte_at(0x1000), byte_at(0x900000)},
                    {cell, columns * cell},
                    {rows * cell, cell},
                    cell,
                    rows,
                    columns};
  };
  for (const std::int64_t cell : {1, 2, 3, 4, 8, 12, 16, 24}) {
    for (const auto& [columns, rows] :
         {std::pair{2, 1000}, {8, 4096}, {64, 64}, {4096, 8}, {100000, 7}}) {
      const auto there = sheet(cell, columns, rows);
      auto back = there;
      std::swap(back.at[0], back.at[1]);
      std::swap(back.row_stride[0], back.row_stride[1]);
      std::swap(back.outer_stride[0], back.outer_stride[1]);
      for (const auto& turned : {there, back}) {
        const auto tiles = tiles_of(turned);
        REQUIRE(tiles.has_value());
        CHECK(tiles->shared_bytes() <= 48 * 1024);
        CHECK(tiles->cell_bytes() == cell);
        CHECK(tiles->pitch % 8 == 4);
        CHECK(tiles->pitch >= tiles->tile_a * cell);
        CHECK(tiles->tile_a * tiles->tile_b * cell >= 1024);
        CHECK(std::int64_t{tiles->units()} * tiles->tile_a * tiles->tile_b >= columns * rows);
      }
    }
  }
  CHECK(!tiles_of(sheet(32, 8, 4096)));  // memory moves 32 bytes at a time anyway
  CHECK(!tiles_of(sheet(4, 2, 20)));     // too small to gain
  // Both sides go the same way.
  const Sheet<2> same{{byte_at(0x1000), byte_at(0x900000)}, {4, 4}, {20000, 30000}, 4, 4096, 8};
  CHECK(!tiles_of(same));
}

TEST_CASE("loads and stores of tiles are as wide as their side allows") {
  struct Case {
    std::int64_t cell, a, b;
    std::uintptr_t into, from;
    std::uint32_t store, load, piece;
  };
  for (const auto& [cell, a, b, into, from, store, load, piece] :
       {Case{2, 8, 4096, 0, 0, 16, 16, 2}, Case{2, 4096, 8, 0, 0, 16, 16, 2},
        Case{2, 7, 4096, 0, 0, 16, 2, 2}, Case{2, 4096, 7, 0, 0, 2, 16, 2},
        Case{4, 8, 4096, 2, 0, 2, 16, 2}, Case{4, 8, 4096, 0, 8, 16, 8, 4},
        Case{12, 9, 400, 0, 0, 16, 4, 4}, Case{16, 9, 100, 0, 0, 16, 16, 4},
        Case{1, 2, 4096, 0, 0, 16, 2, 1}}) {
    const auto tiles = tiles_of({{byte_at(0x1000 + into), byte_at(0x900000 + from)},
                                 {cell, a * cell},
                                 {b * cell, cell},
                                 cell,
                                 b,
                                 a});
    REQUIRE(tiles.has_value());
    CHECK(tiles->a == a);
    CHECK(tiles->b == b);
    CHECK(tiles->stores.width == store);
    CHECK(tiles->loads.width == load);
    CHECK(tiles->piece == piece);
  }
}

TEST_CASE("threads share the lines of a tile in squares, each place once") {
  for (const std::uint32_t accesses : {1, 2, 3, 8, 33}) {
    for (const std::uint32_t together : {0, 1, 3}) {
      const Lines lines{Divider(accesses), together, 16};
      for (const std::uint32_t count : {1, 7, 8, 64}) {
        std::vector<int> taken(lines.places(count), 0);
        int wrong = 0;
        for (std::uint32_t index = 0; index < taken.size(); ++index) {
          const auto [line, access] = lines.place(index);
          wrong += access >= accesses || line % (1u << together) != index % (1u << together);
          ++taken.at(line * accesses + access);
        }
        CHECK(wrong == 0);
        CHECK(std::ranges::count(taken, 1) == std::ssize(taken));
        CHECK(taken.size() >= count * accesses);
        CHECK(taken.size() < (count + (1u << together)) * accesses);
      }
    }
  }
}

TEST_CASE("threads of a warp access different banks of shared memory") {
  struct Case {
    std::int64_t cell, a, b;
  };
  for (const Case& size : {Case{1, 4096, 4096}, Case{2, 4096, 4096}, Case{4, 4096, 4096},
                           Case{2, 8, 4096}, Case{1, 4096, 8}, Case{2, 4096, 8}}) {
    const std::int64_t cell = size.cell, a = size.a, b = size.b;
    const auto tiles = tiles_of(
        {{byte_at(0x1000), byte_at(0x9000000)}, {cell, a * cell}, {b * cell, cell}, cell, b, a});
    REQUIRE(tiles.has_value());
    std::array<std::set<std::int64_t>, 32> in, out;  // words of a bank
    const auto put = [](auto& banks, std::int64_t at) {
      banks[static_cast<std::size_t>(at / 4 % 32)].insert(at / 4);
    };
    for (std::uint32_t thread = 0; thread < 32; ++thread) {
      const auto load = tiles->loads.place(thread), store = tiles->stores.place(thread);
      put(in, load.line * tiles->pitch + load.access * tiles->loads.width);
      put(out, store.access * (tiles->stores.width / cell) * tiles->pitch + store.line * cell);
    }
    CAPTURE(cell);
    CAPTURE(a);
    for (const auto& banks : {in, out})
      CHECK(std::ranges::all_of(banks, [](const auto& words) { return words.size() <= 1; }));
  }
}
