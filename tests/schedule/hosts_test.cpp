#include "baton/schedule/hosts.hpp"

#include <doctest/doctest.h>

#include "baton/error.hpp"

using namespace baton;

namespace {

std::vector<int> list(std::span<const int> values) { return {values.begin(), values.end()}; }

}  // namespace

TEST_CASE("hosts are numbered by their lowest ranks, whatever they are called") {
  const int names[] = {7, 3, 7, 7, 3};
  const Hosts hosts(names);
  CHECK(hosts.size() == 5);
  CHECK(hosts.count() == 2);
  CHECK(list(hosts.of()) == std::vector{0, 1, 0, 0, 1});
  CHECK(list(hosts.ranks(0)) == std::vector{0, 2, 3});
  CHECK(list(hosts.ranks(1)) == std::vector{1, 4});
  CHECK(hosts.local(3) == 2);
  CHECK(hosts.local(4) == 1);
  CHECK(hosts.largest() == 3);
  CHECK(!hosts.even());
  CHECK(Hosts(std::vector{0, 0, 1, 1}).even());
}

TEST_CASE("a problem on one host has no grouping") {
  CHECK(host_grouping(std::vector<int>{}) == nullptr);
  CHECK(host_grouping(std::vector{4, 4, 4}) == nullptr);
  CHECK(*host_grouping(std::vector{1, 0}) == Hosts(std::vector{0, 1}));
}

TEST_CASE("hosts as text") {
  for (const char* text : {"2x4", "1x1", "8x1", "0,1,0,1", "0,0,1", "0,1,1,2,0"}) {
    CHECK(print(parse_hosts(text)) == text);
  }
  CHECK(print(parse_hosts("0,0,1,1")) == "2x2");
  CHECK(print(parse_hosts("9,4,9")) == "0,1,0");
  for (const char* text : {"", "x2", "2x", "2x0", "0x2", "2x2x2", "0,,1", "0,1,", "-1,0", "a",
                           "2x4 ", "99999x99999"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_hosts(text), Error);
  }
}
