// Runs whose messages are read in their senders' memory.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "baton/error.hpp"
#include "memory/copy.hpp"
#include "stage.hpp"

using namespace baton;
using namespace baton::execute;
using namespace support;

namespace {

using Texts = std::vector<std::string>;

void difference(void* into, const void* left, const void* right, std::size_t count, void*) {
  for (std::size_t i = 0; i < count; ++i)
    static_cast<std::int8_t*>(into)[i] = static_cast<std::int8_t>(
        static_cast<const std::int8_t*>(left)[i] - static_cast<const std::int8_t*>(right)[i]);
}

}  // namespace

TEST_CASE("a fold that waits for its message alone is done with it, part by part") {
  for (const bool left : {true, false})
    for (const bool scripted : {true, false})
      for (const bool recorded : {true, false}) {
        Stage s(std::string("recv_reduce 1 output[0:4] = input[4:4] ") + (left ? "left" : "right") +
                    "\nsend 2 output[0:4]",
                2);
        s.fold = difference;
        s.transport.least_read = 4;
        for (std::size_t i = 0; i < 16; ++i) s.input[i] = static_cast<std::byte>(50 + 5 * i);
        std::optional<Recorded> record;
        if (recorded) record.emplace(s);
        if (scripted)
          CHECK(!s.start_scripted(3, true));
        else
          s.start();
        CHECK(s.transport.fresh() == Texts{"take 1 of 4"});
        CHECK(s.transport.posted[0].to.unit == 1);
        s.transport.give(0, {1, 2, 3});
        CHECK(!s.run->drive());
        s.transport.give(0, {4});
        s.transport.complete(0);
        CHECK(!s.run->drive());
        CHECK(s.transport.fresh() == Texts{"offer 2 of 4"});
        for (int i = 0; i < 4; ++i) {
          const int other = 50 + 5 * (4 + i);
          const int difference = left ? i + 1 - other : other - (i + 1);
          CHECK(static_cast<std::int8_t>(s.output[static_cast<std::size_t>(i)]) == difference);
        }
        s.transport.complete(1);
        CHECK(s.run->drive());
        CHECK(s.run->completed() == 3);
        if (record) record->check(3);
      }
}

TEST_CASE("a fold of more than the cache keeps, in place or not, is that of its parts") {
  std::size_t half = 1000;
  while (!host::outgrows_cache(half)) half *= 2;
  const std::string from = "[0:" + std::to_string(half) + "]";
  for (const char* const other : {"input", "output"})
    for (const bool left : {true, false}) {
      Stage s(
          fmt::format("recv_reduce 1 output{0} = {1}{0} {2}", from, other, left ? "left" : "right"),
          2, 1, 2 * half);
      s.fold = difference;
      s.transport.least_read = 4;
      for (std::size_t i = 0; i < half; ++i) s.input[i] = static_cast<std::byte>(50 + i % 7);
      std::fill(s.output.begin(), s.output.end(), std::byte{60});
      auto expected = other == std::string_view("input") ? s.input : s.output;
      for (std::size_t i = 0; i < half; ++i) {
        const int value = static_cast<int>(expected[i]) - static_cast<int>(i / (half / 8));
        expected[i] = static_cast<std::byte>(left ? -value : value);
      }
      std::fill(expected.begin() + static_cast<std::ptrdiff_t>(half), expected.end(),
                std::byte{60});
      s.start();
      for (std::int8_t i = 0; i < 8; ++i)
        s.transport.give(0, std::vector<std::int8_t>(half / 8, i));
      s.transport.complete(0);
      CHECK(s.run->drive());
      CHECK((s.output == expected));
    }
}

TEST_CASE("parts that are taken are of whole elements; of the longest, a message is taken whole") {
  for (const std::size_t bytes : {std::size_t{3}, Destination::most_unit}) {
    Stage s("recv_reduce 1 output[0:4] = input[4:4] left", 2, bytes);
    std::size_t folded = 0;
    s.fold = [](void*, const void*, const void*, std::size_t count, void* sum) {
      *static_cast<std::size_t*>(sum) += count;
    };
    s.context = &folded;
    s.transport.least_read = 1;
    s.start();
    CHECK(s.transport.fresh() == Texts{"take 1 of " + std::to_string(4 * bytes)});
    CHECK(s.transport.posted[0].to.unit == bytes);
    s.transport.give(0, std::vector<std::int8_t>(3 * bytes));
    CHECK(folded == 3);
    s.transport.give(0, std::vector<std::int8_t>(bytes));
    s.transport.complete(0);
    CHECK(s.run->drive());
    CHECK(folded == 4);
  }
  Stage longer("recv_reduce 1 output[0:1] = input[4:1] left", 2, Destination::most_unit + 1);
  longer.transport.least_read = 1;
  longer.start();
  CHECK(longer.transport.fresh() == Texts{"fetch 1 of 4097"});
}

TEST_CASE("what waits for anything else is done after its message, which lies in its slot") {
  for (const char* const receive :
       {"recv_reduce 1 output[0:4] = input[4:4] left", "recv 1 output[0:2 x2 /3]"})
    for (const bool scripted : {true, false}) {
      Stage s(std::string("send 2 output[0:4]\n") + receive, 2);
      s.transport.least_read = 4;
      if (scripted)
        CHECK(!s.start_scripted(3));
      else
        s.start();
      const Texts posted = s.transport.fresh();
      REQUIRE(std::ranges::is_permutation(posted, Texts{"offer 2 of 4", "fetch 1 of 4"}));
      const std::size_t fetch = posted[0] == "fetch 1 of 4" ? 0 : 1;
      std::memset(s.transport.posted[fetch].data, 7, 4);
      s.transport.complete(fetch);
      CHECK(!s.run->drive());
      CHECK(s.output[0] == std::byte{0});  // still to be sent
      s.transport.complete(1 - fetch);
      CHECK(s.run->drive());
      CHECK(s.output[0] == std::byte{7});
    }
}

TEST_CASE("what only a part of a message is for, or more than one, takes it whole") {
  for (const char* const steps :
       {"recv 1 slot[0:4]\nfold output[0:2] = input[0:2] + slot[0:2]",
        "recv 1 slot[0:4]\nfold output[0:4] = slot[0:4] + slot[0:4]",
        "recv 1 scratch[0:4]\nfold output[0:4] = input[0:4] + scratch[0:4]",
        "recv 1 slot[0:4]\nfold output[0:2 x2 /3] = input[0:4] + slot[0:4]",
        "recv 1 slot[0:4]\ncopy output[0:2] = slot[0:2]",
        "recv 1 slot[0:4]\ncopy output[0:4] = slot[0:4]\ncopy slot[4:4] = slot[0:4]\n"
        "copy output[4:4] = slot[4:4]",
        "recv 1 slot[0:4]\nfold output[0:4] = input[0:4] + slot[0:4]\ncopy output[4:4] = slot[0:4]",
        "recv 1 slot[0:4]\ncopy output[0:4] = slot[0:4]\ndivide slot[0:4]\n"
        "copy output[4:4] = slot[0:4]",
        "recv 1 slot[0:4]\ncopy output[0:4] = slot[0:4]\n"
        "fold slot[4:2] = slot[0:2] + input[0:2]\ncopy output[4:2] = slot[4:2]",
        "recv 1 slot[0:4]\ncopy output[0:4] = slot[0:4]\ncopy output[4:4] = slot[0:4]",
        "recv 1 slot[0:4]\ncopy output[8:4] = input[0:4]\ncopy output[0:4] = slot[0:4]"}) {
    Stage s(steps, 2);
    s.transport.least_read = 4;
    s.start();
    CHECK(s.transport.fresh() == Texts{"fetch 1 of 4"});
  }
}

TEST_CASE("copies that gather a message, or move it to its places, go with it, part by part") {
  for (const bool scripted : {true, false})
    for (const bool recorded : {true, false})
      for (const bool given : {true, false}) {
        Stage s("send 1 input[0:2 x3 /4]\nrecv 2 output[1:2 x3 /5]", 2);
        s.transport.least_read = 4;
        s.transport.takes_parts = given;
        for (int again = 0; again < 2; ++again) {
          for (std::size_t i = 0; i < 16; ++i) s.input[i] = static_cast<std::byte>(i);
          std::fill(s.output.begin(), s.output.end(), std::byte{9});
          std::optional<Recorded> record;
          if (recorded) record.emplace(s);
          if (scripted)
            CHECK(!s.start_scripted(3, true));
          else
            s.start();
          const std::string send = given ? "give 1 of 6" : "offer 1 of 6";
          const Texts posted = s.transport.fresh();
          REQUIRE(std::ranges::is_permutation(posted, Texts{"take 2 of 6", send}));
          const std::size_t sent = s.transport.posted.size() - (posted[0] == send ? 2 : 1);
          const std::size_t taken = s.transport.posted.size() - (posted[0] == send ? 1 : 2);
          if (given) {  // what the input is now, not what it was at the start
            s.input[5] = std::byte{50};
            CHECK(s.transport.made(sent, 3) == std::vector<int>{0, 1, 4});
            CHECK(s.transport.made(sent, 3) == std::vector<int>{50, 8, 9});
          } else {
            CHECK(static_cast<int>(s.transport.posted[sent].data[3]) == 5);
          }
          s.transport.give(taken, {1, 2, 3});
          CHECK(!s.run->drive());
          s.transport.give(taken, {4});
          s.transport.give(taken, {5, 6});
          s.transport.complete(sent);
          s.transport.complete(taken);
          CHECK(s.run->drive());
          CHECK(s.run->completed() == 4);
          const int expected[] = {9, 1, 2, 9, 9, 9, 3, 4, 9, 9, 9, 5, 6, 9, 9, 9};
          for (std::size_t i = 0; i < 16; ++i) CHECK(static_cast<int>(s.output[i]) == expected[i]);
          if (record) record->check(4);
        }
      }
}

TEST_CASE("a message of more than the cache keeps comes to its places as others do") {
  std::size_t rows = 1;
  while (!host::outgrows_cache(rows * 1000)) rows *= 2;
  const std::size_t elements = rows * 2000;
  Stage s(fmt::format("recv 1 output[0:1000 x{} /2000]", rows), 2, 1, elements);
  s.transport.least_read = 4;
  std::fill(s.output.begin(), s.output.end(), std::byte{9});
  s.start();
  std::vector<std::byte> expected(elements, std::byte{9});
  for (std::size_t row = 0; row < rows; ++row) {
    const auto number = static_cast<std::int8_t>(row % 100);
    s.transport.give(0, std::vector<std::int8_t>(300, number));
    s.transport.give(0, std::vector<std::int8_t>(700, number));
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(row * 2000), 1000,
                static_cast<std::byte>(number));
  }
  s.transport.complete(0);
  CHECK(s.run->drive());
  CHECK((s.output == expected));
}

TEST_CASE("a message that is made while it is sent does not go by the transport's blocking calls") {
  Stage s("send 1 input[0:2 x3 /4]\nrecv 2 output[0:2]", 2);
  s.transport.least_read = 4;
  s.transport.takes_parts = true;
  CHECK(!s.start_scripted(3, true));
  CHECK(s.transport.together == 0);
  CHECK(std::ranges::count(s.transport.fresh(), "give 1 of 6") == 1);
}

TEST_CASE("a run that goes on over another transport does as that one can") {
  Stage s("send 1 input[0:2 x3 /4]", 2);
  Puppet others[2];
  for (std::size_t i = 0; i < 16; ++i) s.input[i] = static_cast<std::byte>(i);
  for (const bool given : {true, false}) {
    Puppet& other = others[given ? 0 : 1];
    other.least_read = 4;
    other.takes_parts = given;
    s.start_over(other);
    CHECK(other.fresh() == Texts{given ? "give 1 of 6" : "offer 1 of 6"});
    if (!given) CHECK(other.posted[0].data[3] == std::byte{5});
    other.complete(0);
    CHECK(s.run->drive());
  }
}

TEST_CASE("a message is gathered before it is sent where others wait for that alone") {
  for (const bool scripted : {true, false}) {
    Stage s("send 1 input[0:2 x3 /4]\nrecv 2 input[0:4]", 2);
    s.transport.least_read = 4;
    s.transport.takes_parts = true;
    if (scripted)
      CHECK(!s.start_scripted(3, true));
    else
      s.start();
    const Texts posted = s.transport.fresh();
    CHECK(std::ranges::is_permutation(posted, Texts{"offer 1 of 6", "fetch 2 of 4"}));
  }
}

TEST_CASE("what was folded in a run that was given up is folded again in the next") {
  Stage s("recv_reduce 1 output[0:4] = input[4:4] left\nrecv 1 output[4:4]", 1);
  s.transport.least_read = 4;
  s.start();
  s.transport.give(0, {1, 2, 3, 4});
  s.transport.complete(0);
  s.transport.refused_receive = 1;  // posted when the first has come, before what follows that
  CHECK_THROWS_AS(s.run->drive(), Error);
  s.run->abandon();
  s.transport.refused_receive = std::numeric_limits<std::size_t>::max();
  s.transport.readable = false;
  s.start();
  std::memset(s.transport.posted[1].data, 9, 4);
  s.transport.complete(1);
  CHECK(!s.run->drive());
  CHECK(s.output[0] == std::byte{9});
  s.transport.complete(2);
  CHECK(s.run->drive());
}
