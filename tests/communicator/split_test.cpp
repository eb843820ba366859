#include <doctest/doctest.h>

#include <numeric>

#include "support/conformance.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace support;

namespace {

int members(Communicator& c) {
  std::vector<std::int32_t> one{1};
  c.all_reduce(one, sum);
  return one[0];
}

}  // namespace

TEST_CASE("split: by color, ordered by key, then by rank") {
  on_ranks(7, [](Communicator& c) {
    Communicator part = c.split(c.rank() % 3, -c.rank());
    const int size = c.rank() % 3 == 0 ? 3 : 2;
    CHECK(part.size() == size);
    CHECK(members(part) == size);
    CHECK(part.rank() == size - 1 - c.rank() / 3);
    std::vector<int> ranks(static_cast<std::size_t>(size));
    part.all_gather(std::vector<int>{c.rank()}, ranks);
    CHECK(std::is_sorted(ranks.rbegin(), ranks.rend()));

    Communicator same = c.split(5, 1);
    CHECK(same.rank() == c.rank());
    CHECK(same.size() == 7);
  });
}

TEST_CASE("split: a negative color gives no communicator") {
  on_ranks(4, [](Communicator& c) {
    Communicator part = c.split(c.rank() == 2 ? -1 : 0);
    CHECK(part.valid() == (c.rank() != 2));
    if (part.valid()) CHECK(members(part) == 3);
    CHECK(members(c) == 4);
  });
}

TEST_CASE("split: parts of parts, used side by side") {
  on_ranks(8, [](Communicator& c) {
    Communicator half = c.split(c.rank() / 4), quarter = half.split(half.rank() / 2);
    Communicator alone = quarter.split(quarter.rank());
    CHECK(alone.size() == 1);
    for (int turn = 0; turn < 3; ++turn) {
      CHECK(members(quarter) == 2);
      CHECK(members(c) == 8);
      CHECK(members(alone) == 1);
      CHECK(members(half) == 4);
    }
    conformance::reductions(half, brief(4));
    conformance::rooted(quarter, brief(2));
  });
}

TEST_CASE("split: options go along") {
  Options options = test_options();
  options.check = true;
  options.choices[static_cast<std::size_t>(Collective::all_reduce)] = {"ring", 0};
  on_ranks(
      4,
      [](Communicator& c) {
        Communicator part = c.split(c.rank() / 2);
        CHECK(part.options().check);
        std::vector<float> x(4);
        CHECK(part.chosen(calls::all_reduce(x, x, sum)).algorithm == "ring");
      },
      options);
}

TEST_CASE("split: the parent may go first") {
  on_ranks(4, [](Communicator& c) {
    Communicator part = c.split(c.rank() / 2);
    { const Communicator gone = std::move(c); }
    CHECK(members(part) == 2);
  });
}
