#include "baton/schedule/region.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>

#include "baton/error.hpp"
#include "baton/schedule/step.hpp"
#include "baton/schedule/text.hpp"

using namespace baton;

namespace {

/// The elements in packed order, one by one.
std::vector<std::int64_t> elements(const Region& r) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < r.count; ++i) {
    for (std::int64_t j = 0; j < r.block; ++j) all.push_back(r.offset + i * r.stride + j);
  }
  return all;
}

bool share_an_element(const Region& a, const Region& b) {
  const auto in_a = elements(a);
  const std::set<std::int64_t> all(in_a.begin(), in_a.end());
  for (const std::int64_t e : elements(b)) {
    if (all.count(e) > 0) return a.buffer == b.buffer;
  }
  return false;
}

class Random {
 public:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(generator_() % static_cast<std::uint64_t>(n));
  }
  Region region() {
    const std::int64_t block = 1 + below(4), count = 1 + below(6);
    const auto buffer = below(8) == 0 ? Buffer::scratch : Buffer::output;
    return strided(buffer, below(30), block, count, block + below(6));
  }

 private:
  std::mt19937_64 generator_{5};
};

}  // namespace

TEST_CASE("overlap is decided exactly, against brute force") {
  Random random;
  int some = 0;
  for (int i = 0; i < 200'000; ++i) {
    const Region a = random.region(), b = random.region();
    const bool expected = share_an_element(a, b);
    some += expected ? 1 : 0;
    const Overlap found = overlap(a, b);
    if (found != (expected ? Overlap::some : Overlap::none)) {
      FAIL_CHECK(print(a) << " and " << print(b) << ": " << expected);
    }
    CHECK(overlap(b, a) == found);
  }
  CHECK(some > 10'000);
  CHECK(some < 190'000);
}

TEST_CASE("overlap of very many blocks") {
  const std::int64_t many = 1'000'000;
  const Region even = strided(Buffer::input, 0, 3, many, 8);
  CHECK(overlap(even, strided(Buffer::input, 3, 5, many, 8)) == Overlap::none);
  CHECK(overlap(even, strided(Buffer::input, 3, 6, 2, 8)) == Overlap::some);
  CHECK(overlap(even, strided(Buffer::input, 8 * many - 5, 1, many, 8)) == Overlap::none);
  CHECK(overlap(even, contiguous(Buffer::input, 8 * (many - 1) + 2, 100)) == Overlap::some);
  CHECK(overlap(even, contiguous(Buffer::input, 8 * (many - 1) + 3, 100)) == Overlap::none);
  CHECK(overlap(even, strided(Buffer::input, 3, 1, 10, 16)) == Overlap::none);  // few blocks: exact
  CHECK(overlap(even, strided(Buffer::input, 3, 1, many / 4, 16)) == Overlap::assumed);
  CHECK(overlap(even, strided(Buffer::input, 8 * many, 1, many, 16)) == Overlap::none);
  CHECK(overlap(even, strided(Buffer::output, 0, 3, many, 8)) == Overlap::none);
  const Region huge = contiguous(Buffer::input, std::int64_t{1} << 40, std::int64_t{1} << 33);
  CHECK(overlap(huge, contiguous(Buffer::input, (std::int64_t{1} << 40) + (std::int64_t{1} << 33),
                                 1)) == Overlap::none);
  CHECK(overlap(huge, contiguous(Buffer::input, (std::int64_t{1} << 40) - 1, 2)) == Overlap::some);
}

TEST_CASE("empty regions overlap nothing") {
  const Region none = contiguous(Buffer::input, 3, 0), all = contiguous(Buffer::input, 0, 10);
  CHECK(none.empty());
  CHECK(overlap(none, all) == Overlap::none);
  CHECK(overlap(all, none) == Overlap::none);
}

TEST_CASE("a slice holds the elements of the packed order, in at most three regions") {
  Random random;
  for (int i = 0; i < 5'000; ++i) {
    const Region region = random.region();
    const std::int64_t first = random.below(region.length() + 1);
    const std::int64_t length = random.below(region.length() - first + 1);
    Regions slices;
    append_slice(region, first, length, slices);
    std::vector<std::int64_t> found;
    for (const Region& slice : slices) {
      CHECK(slice.buffer == region.buffer);
      CHECK(!slice.empty());
      CHECK((slice.count > 1) == (slice.stride != 0));
      for (const std::int64_t e : elements(slice)) found.push_back(e);
    }
    const auto all = elements(region);
    CHECK(found == std::vector<std::int64_t>(all.begin() + first, all.begin() + first + length));
    CHECK(slices.size() <= 3);
  }
}

TEST_CASE("regions in their simplest form") {
  CHECK(strided(Buffer::input, 4, 3, 5, 3) == contiguous(Buffer::input, 4, 15));
  CHECK(strided(Buffer::input, 4, 3, 1, 100) == contiguous(Buffer::input, 4, 3));
  const Region r = strided(Buffer::output, 10, 2, 3, 5);
  CHECK(r.length() == 6);
  CHECK(r.end() == 22);
  CHECK(!r.contiguous());
}

TEST_CASE("a schedule refuses regions whose ends or lengths do not fit 64 bits") {
  const auto refused = [](std::vector<Region> regions) {
    Schedule::Header header;
    header.collective = Collective::program;
    Step step;
    step.kind = StepKind::divide;
    step.parts[0] = static_cast<std::uint32_t>(regions.size());
    try {
      const Schedule schedule(header, {step}, std::move(regions));
    } catch (const Error& error) {
      return error.code == ErrorCode::invalid_argument;
    }
    return false;
  };
  constexpr std::int64_t most = std::int64_t{1} << 48, far = std::int64_t{1} << 62;
  CHECK_FALSE(refused({contiguous(Buffer::output, most - 1, 1)}));
  CHECK_FALSE(refused({{Buffer::output, 0, 1, most / 2, 2}}));
  CHECK(refused({contiguous(Buffer::output, most, 1)}));
  CHECK(refused({contiguous(Buffer::output, far, far)}));
  CHECK(refused({contiguous(Buffer::output, 1, INT64_MAX)}));
  CHECK(refused({{Buffer::output, 0, far, 4, far}}));
  CHECK(refused({{Buffer::output, 0, 1, INT64_MAX, INT64_MAX}}));
  CHECK(refused({{Buffer::output, 0, 1, most / 2 + 2, 2}}));
  CHECK(refused(std::vector<Region>(2, contiguous(Buffer::output, 0, most - 1))));
}

TEST_CASE("a schedule refuses buffers of negative sizes") {
  Schedule::Header header;
  header.collective = Collective::program;
  CHECK_NOTHROW(Schedule(header, {}, {}));
  header.scratch = -1;
  CHECK_THROWS_WITH_AS(Schedule(header, {}, {}), "expected buffers of 0 elements or more, found -1",
                       Error);
}
