/// Random numbers that depend on their position only.

#include "transformer/random.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "support/ranks.hpp"
#include "transformer/compare.hpp"

using namespace baton::transformer;
using baton::Shape;
using support::difference;

// From kat_vectors of the authors' library, Random123.
TEST_CASE("Philox gives the known answers") {
  using Words = std::array<std::uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox({ones, ones, ones, ones}, {ones, ones}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("words are those of Philox, four for each counter") {
  const Random random{0x0123456789abcdef, 0xfedcba9876543210};
  const std::uint64_t block = 0x300000002;
  const auto four = philox({2, 3, 0x76543210, 0xfedcba98}, {0x89abcdef, 0x01234567});
  for (std::uint64_t i = 0; i < 4; ++i) CHECK(random.word(4 * block + i) == four[i]);
}

TEST_CASE("moments of the distributions") {
  const Random random{3, 4};
  constexpr int n = 100000;
  double sum = 0, squares = 0, normal_sum = 0, normal_squares = 0, beyond = 0, pairs = 0;
  for (int i = 0; i < n; ++i) {
    const double u = random.uniform(static_cast<std::uint64_t>(i));
    REQUIRE((u > 0 && u < 1));
    sum += u, squares += u * u;
    const double z = random.normal(static_cast<std::uint64_t>(i));
    normal_sum += z, normal_squares += z * z, beyond += std::abs(z) > 1.959964 ? 1 : 0;
    pairs += z * random.normal(static_cast<std::uint64_t>(i + 1));
  }
  // Bounds of 5 standard deviations; the numbers are always the same.
  CHECK(std::abs(sum / n - 0.5) < 5 * std::sqrt(1 / 12.0 / n));
  CHECK(std::abs(squares / n - 1 / 3.0) < 5 * std::sqrt(4 / 45.0 / n));
  CHECK(std::abs(normal_sum / n) < 5 / std::sqrt(n));
  CHECK(std::abs(normal_squares / n - 1) < 5 * std::sqrt(2.0 / n));
  CHECK(std::abs(beyond / n - 0.05) < 5 * std::sqrt(0.05 * 0.95 / n));
  CHECK(std::abs(pairs / n) < 5 / std::sqrt(n));
}

TEST_CASE("parts, names, streams and seeds have sequences of their own") {
  const Random random{1, 2};
  std::set<std::uint32_t> first{random.word(0), Random{2, 2}.word(0), Random{1, 3}.word(0)};
  for (std::uint64_t part = 0; part < 10; ++part) first.insert(random.of(part).word(0));
  for (const auto* name : {"a", "b", "ab", "ba", ""}) first.insert(random.of(name).word(0));
  first.insert(random.of(0).of(1).word(0));
  CHECK(first.size() == 19);
  CHECK(random.of("a").word(5) == random.of("a").word(5));
}

TEST_CASE_TEMPLATE("a piece is drawn as the slice of the whole", T, float, double) {
  const Random random{7, 8};
  for (const Shape& whole : {Shape{11}, Shape{4, 7}, Shape{3, 5, 2}, Shape{2, 3, 4, 5}}) {
    CAPTURE(whole.text());
    const auto compare = [&](const auto& draw) {
      const auto before = support::random_array<T>(whole, 1);
      auto all = before.copy();
      draw(all.view(), Piece{whole});
      for (int dim = 0; dim < whole.rank(); ++dim) {
        const std::int64_t begin = whole[dim] / 3, end = whole[dim] - whole[dim] / 4;
        // What dropout is applied to is a slice of the same elements.
        auto part = Array<T>::copy_of(before.view().slice(dim, begin, end));
        Piece piece{whole};
        piece.first[static_cast<std::size_t>(dim)] = begin;
        draw(part.view(), piece);
        CHECK(difference(part, Array<T>::copy_of(all.view().slice(dim, begin, end))) == 0);
      }
    };
    compare([&](View<T> x, const Piece& p) { fill_uniform(x, random, -2, 3, p); });
    compare([&](View<T> x, const Piece& p) { fill_normal(x, random, 0.5, p); });
    compare([&](View<T> x, const Piece& p) { Dropout{0.4, random, p}.apply(x); });
  }
}

TEST_CASE("elements are the numbers of their positions") {
  const Random random{7, 8};
  Array<double> uniform({3, 7}), normal({3, 7});
  fill_uniform(uniform.view(), random, -2, 3);
  fill_normal(normal.view(), random, 0.5);
  for (std::uint64_t i = 0; i < 21; ++i) {
    CHECK(uniform.data()[i] == -2 + 5 * random.uniform(i));
    CHECK(normal.data()[i] == 0.5 * random.normal(i));
  }
}

TEST_CASE("strided views draw what contiguous ones do") {
  const Random random{7, 8};
  Array<float> plain({3, 5}), turned({5, 3});
  fill_uniform(plain.view(), random, 0, 1);
  fill_uniform(turned.view().transposed(0, 1), random, 0, 1);
  CHECK(difference(Array<float>::copy_of(turned.view().transposed(0, 1)), plain) == 0);
  Dropout{0.5, random, {{3, 5}}}.apply(plain.view());
  Dropout{0.5, random, {{3, 5}}}.apply(turned.view().transposed(0, 1));
  CHECK(difference(Array<float>::copy_of(turned.view().transposed(0, 1)), plain) == 0);
}

TEST_CASE_TEMPLATE("dropout zeroes the share p and scales the rest", T, float, double) {
  for (const double p : {0.0, 0.1, 0.5, 0.9}) {
    CAPTURE(p);
    Array<T> x({100, 1000});
    std::fill_n(x.data(), x.size(), T(3));
    Dropout{p, {9, 9}, {x.shape()}}.apply(x.view());
    const auto zeros = std::count(x.data(), x.data() + x.size(), T(0));
    CHECK(std::abs(static_cast<double>(zeros) / 1e5 - p) <= 5 * std::sqrt(p * (1 - p) / 1e5));
    CHECK(std::count(x.data(), x.data() + x.size(), T(3) * T(1 / (1 - p))) == x.size() - zeros);
  }
}
