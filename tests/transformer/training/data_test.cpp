#include <doctest/doctest.h>

#include <cmath>

#include "transformer/training/batch.hpp"
#include "transformer/training/compare.hpp"
#include "transformer/worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

TEST_CASE("split_batch: slices in turn, nothing dropped, sizes differ by at most one") {
  for (const std::int64_t n : {0, 1, 2, 7, 8, 13, 64}) {
    const Batch<float> batch = create_batch<float>(1, {n, 3}, {n, 2});
    for (const int parts : {1, 2, 3, 4, 8}) {
      const auto slices = split_batch(batch, parts);
      CHECK(slices.size() == static_cast<std::size_t>(parts));
      std::int64_t next = 0, least = n, most = 0;
      for (const Batch<float>& slice : slices) {
        for (std::int64_t i = 0; i < slice.samples(); ++i, ++next) {
          for (int j = 0; j < 3; ++j) CHECK(slice.x.view()(i, j) == batch.x.view()(next, j));
          for (int j = 0; j < 2; ++j)
            CHECK(slice.target.view()(i, j) == batch.target.view()(next, j));
        }
        CHECK(slice.target.extent(0) == slice.samples());
        least = std::min(least, slice.samples());
        most = std::max(most, slice.samples());
      }
      CHECK(next == n);
      CHECK(most - least <= 1);
    }
  }
}

TEST_CASE("share_of: samples along dp, positions along sp, everything once") {
  on_ranks(6, [](Communicator& world) {
    const Mesh mesh(world, {{Axis::dp, 3}, {Axis::sp, 2}});
    const Batch<double> batch = create_batch<double>(5, {7, 4, 2}, {7, 4, 1});
    const Share<double> share = share_of(batch, mesh);
    const std::int64_t first[] = {0, 3, 5}, samples[] = {3, 2, 2};
    const int dp = mesh.rank(Axis::dp), sp = mesh.rank(Axis::sp);
    CHECK(share.first_sample == first[dp]);
    CHECK(share.elements == 28);
    CHECK(share.batch.x.shape() == Shape{samples[dp], 2, 2});
    CHECK(share.batch.target.shape() == Shape{samples[dp], 2, 1});
    CHECK(share.batch.x.view()(1, 1, 1) == batch.x.view()(first[dp] + 1, 2 * sp + 1, 1));
    const Batch<double> odd = create_batch<double>(5, {7, 5, 2}, {7, 5, 1});
    CHECK(holds(error_of([&] { share_of(odd, mesh); }).what(), {"[", "5", "multiple of 2", "sp"}));
  });
}

TEST_CASE("share_of tokens: samples along dp, positions along sp, everything once") {
  on_ranks(12, [](Communicator& world) {
    const Mesh mesh(world, {{Axis::dp, 3}, {Axis::sp, 2}, {Axis::tp, 2}});
    TokenBatch batch;
    batch.shape = {7, 4};
    for (int i = 0; i < 28; ++i) batch.ids.push_back(i), batch.targets.push_back(100 + i);
    const TokenBatch share = share_of(batch, mesh);
    const std::int64_t first[] = {0, 3, 5}, samples[] = {3, 2, 2};
    const int dp = mesh.rank(Axis::dp), sp = mesh.rank(Axis::sp);
    REQUIRE(share.shape == Shape{samples[dp], 2});
    for (std::int64_t b = 0; b < samples[dp]; ++b) {
      for (std::int64_t s = 0; s < 2; ++s) {
        const std::int64_t at = (first[dp] + b) * 4 + 2 * sp + s;
        CHECK(share.ids_view()(b, s) == at);
        CHECK(share.targets_view()(2 * b + s) == 100 + at);
      }
    }
    batch.shape = {4, 7};
    CHECK(holds(error_of([&] { share_of(batch, mesh); }).what(),
                {"positions", "multiple of 2", "sp", "7"}));
  });
}

TEST_CASE("two_moons: two half circles, half of the points each") {
  const Batch<double> moons = two_moons<double>(101, 0, 4);
  CHECK(moons.x.shape() == Shape{101, 2});
  double ones = 0, leftmost = 9, rightmost = -9;
  for (std::int64_t i = 0; i < 101; ++i) {
    const double x = moons.x.view()(i, 0), y = moons.x.view()(i, 1),
                 moon = moons.target.view()(i, 0);
    const double from_centre = moon == 0 ? std::hypot(x, y) : std::hypot(x - 1, y - 0.5);
    CHECK(from_centre == doctest::Approx(1));
    CHECK((moon == 0 ? y >= -1e-12 : y <= 0.5 + 1e-12));
    ones += moon;
    leftmost = std::min(leftmost, x);
    rightmost = std::max(rightmost, x);
  }
  CHECK(ones == 50);
  CHECK(leftmost == doctest::Approx(-1));
  CHECK(rightmost == doctest::Approx(2));
}

TEST_CASE("two_moons: noise has the deviation that was asked for, and depends on the seed") {
  const Batch<double> plain = two_moons<double>(4000, 0, 4),
                      noisy = two_moons<double>(4000, 0.3, 4);
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < 8000; ++i) {
    const double noise = noisy.x.data()[i] - plain.x.data()[i];
    sum += noise;
    squares += noise * noise;
  }
  CHECK(std::abs(sum / 8000) < 0.02);
  CHECK(std::sqrt(squares / 8000) == doctest::Approx(0.3).epsilon(0.03));
  CHECK(equal(two_moons<double>(4000, 0.3, 4).x, noisy.x, 0));
  CHECK_FALSE(equal(two_moons<double>(4000, 0.3, 5).x, noisy.x, 0.01));
}

TEST_CASE("create_batch: of the seed, standard normal") {
  const Batch<double> batch = create_batch<double>(9, {50, 8, 5}, {50, 40});
  CHECK(equal(create_batch<double>(9, {50, 8, 5}, {50, 40}).target, batch.target, 0));
  CHECK_FALSE(equal(create_batch<double>(8, {50, 8, 5}, {50, 40}).x, batch.x, 0.01));
  CHECK_FALSE(equal(batch.x.reshaped({50, 40}), batch.target, 0.01));
  double squares = 0;
  for (const double x : batch.x.span()) squares += x * x;
  CHECK(squares / 2000 == doctest::Approx(1).epsilon(0.1));
}

TEST_CASE("compare_tensors: match, largest and mean difference") {
  Array<float> a({2, 2}), b({2, 2});
  b.view()(0, 0) = 4;
  a.view()(0, 0) = 3;
  a.view()(1, 1) = 0.5;
  const Comparison c = compare_tensors<float>(a, b, 0.25);
  CHECK(c.match);
  CHECK(c.max_difference == 1);
  CHECK(c.mean_difference == 0.375);
  CHECK(c.largest == 4);
  CHECK(c.relative() == 0.25);
  CHECK_FALSE(compare_tensors<float>(a, b, 0.249).match);
  CHECK(compare_tensors<float>(a, a, 0).match);
  const Array<float> none({0}), four({4});
  CHECK(compare_tensors<float>(none, none, 0).match);
  CHECK(error_of([&] { compare_tensors<float>(a, four, 0); }).what() ==
        std::string("compare_tensors: expected shape [4], found [2, 2]"));
  for (float* elements : {a.data(), b.data()}) {
    elements[1] = NAN;
    CHECK_FALSE(compare_tensors<float>(a, b, 1e9).match);
    elements[1] = 0;
  }
}
