/// Messages over shared memory in parts: given up, made while they are sent, taken while they come.

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "contract.hpp"
#include "shm_worlds.hpp"
#include "support/ranks.hpp"

using namespace baton;
using contract::Bytes;
using contract::finish;
using contract::pattern;
using shm_worlds::both_ways;
using shm_worlds::on_worlds;
using shm_worlds::Turns;
using support::error_of;
using support::holds;
using support::same_bytes;

TEST_CASE("shm transport: a long message that its sender gives up is not received") {
  both_ways([] {
    Turns turns;
    on_worlds(2, [&](auto t) {
      for (const bool receive_first : {false, true}) {
        constexpr std::size_t length = 5 << 20;
        Message m;
        if (t->rank() == 0) {
          const Bytes first = pattern(length, 1);
          if (receive_first) contract::recv(*t, 1, 8, 0);
          t->isend(1, 7, first.data(), length, m);
          if (receive_first) {
            turns.take(0, [] {});
            turns.take(2, [&] { t->progress(); });  // sends what the ring has room for
            turns.take(4, [&] { t->cancel(m); });
          } else {
            t->cancel(m);
          }
          contract::send(*t, 1, 8, {});
          contract::send(*t, 1, 7, pattern(length, 2));
        } else {
          Bytes got(length);
          if (receive_first) {
            t->irecv(0, 7, got.data(), length, m);
            contract::send(*t, 0, 8, {});
            turns.take(1, [&] { t->progress(); });  // takes the offer
            turns.take(3, [&] { t->progress(); });  // takes a part
            turns.take(5, [] {});
          }
          contract::recv(*t, 0, 8, 0);
          if (!receive_first) t->irecv(0, 7, got.data(), length, m);
          CHECK(finish(*t, m, "given up by its sender") == length);
          CHECK(same_bytes(got, pattern(length, 2)));
        }
      }
      contract::meet(*t);
    });
  });
}

namespace {

/// A message that is made in parts: numbers, counted on.
struct Counting {
  std::uint8_t next;
  std::size_t unit;
  std::vector<std::size_t> parts{};
  Source source{this, &Counting::give, unit};

  static void give(void* counting, std::byte* part, std::size_t bytes) noexcept {
    auto& self = *static_cast<Counting*>(counting);
    for (std::size_t i = 0; i < bytes; ++i) part[i] = static_cast<std::byte>(self.next++);
    self.parts.push_back(bytes);
  }
};
Bytes counted(std::size_t bytes, std::uint8_t first) {
  Bytes all(bytes);
  for (std::byte& byte : all) byte = static_cast<std::byte>(first++);
  return all;
}
/// Appends parts to a vector.
void append(void* bytes, std::byte* part, std::size_t count) {
  static_cast<Bytes*>(bytes)->insert(static_cast<Bytes*>(bytes)->end(), part, part + count);
}

}  // namespace

TEST_CASE("shm transport: messages that are made while they are sent") {
  both_ways([] {
    on_worlds(3, [](auto t) {
      SingleCopy& direct = *t->single_copy();
      Giving& giving = *t->giving();
      CHECK_FALSE(giving.gives(t->rank(), 1));
      CHECK_FALSE(giving.gives((t->rank() + 1) % 3, 1 << 20));
      const int next = (t->rank() + 1) % 3, previous = (t->rank() + 2) % 3;
      for (const bool taken : {false, true})
        for (const std::size_t unit : {1, 12, 3000})
          for (const std::size_t units : {1, 3, 200, 4000}) {
            REQUIRE(giving.gives(next, unit));
            const std::size_t bytes = unit * units;
            Counting made{.next = static_cast<std::uint8_t>(t->rank()), .unit = unit};
            Message out, in;
            Bytes got(taken ? 0 : bytes);
            giving.give(next, 3, made.source, bytes, out);
            if (taken)
              direct.fetch(previous, 3, {&got, append, unit}, bytes, in);
            else
              t->irecv(previous, 3, got.data(), bytes, in);
            CHECK(finish(*t, in, "receive") == bytes);
            finish(*t, out, "send");
            CHECK(got == counted(bytes, static_cast<std::uint8_t>(previous)));
            for (std::size_t i = 0; i + 1 < made.parts.size(); ++i)
              CHECK(made.parts[i] % unit == 0);
          }
      contract::meet(*t);
    });
  });
}

TEST_CASE(
    "shm transport: a message that is made while it is sent, of the wrong length or given up") {
  on_worlds(2, [](auto t) {
    SingleCopy& direct = *t->single_copy();
    constexpr std::size_t bytes = 300'000;
    for (const bool taken : {false, true})
      for (int progress = 0; progress < 4; ++progress) {
        Message m;
        Counting made{.next = 1, .unit = 4}, more{.next = 5, .unit = 4};
        if (t->rank() == 0) {
          t->giving()->give(1, 7, made.source, bytes, m);
          for (int i = 0; i < progress; ++i) t->progress();
          t->cancel(m);
          t->giving()->give(1, 7, more.source, bytes, m);
          finish(*t, m, "second");
          contract::send(*t, 1, 7, pattern(40'000, 3));
        } else {
          Bytes got(taken ? 0 : bytes);
          std::size_t found = 0;
          std::string said;
          const auto receive = [&] {
            if (taken)
              direct.fetch(0, 7, {&got, append, 4}, bytes, m);
            else
              t->irecv(0, 7, got.data(), bytes, m);
            found = finish(*t, m, "receive");
          };
          try {
            receive();
          } catch (const Error& error) {  // some parts had been taken
            said = error.what();
            CHECK(taken);
            CHECK_MESSAGE(holds(said, {"gave it up"}), said);
            got.clear();
            receive();
          }
          CHECK(found == bytes);
          const std::uint8_t first = got.at(0) == std::byte{1} ? 1 : 5;
          CHECK(got == counted(bytes, first));
          if (first == 1) {  // all of it had come
            got.assign(taken ? 0 : bytes, std::byte{0});
            receive();
            CHECK(got == counted(bytes, 5));
          }
          // More room than there are bytes: none of them is taken.
          got.clear();
          direct.fetch(0, 7, {&got, append, 4}, bytes, m);
          CHECK(finish(*t, m, "short") == 40'000);
          CHECK(got.empty());
        }
        contract::meet(*t);
      }
  });
}

TEST_CASE("shm transport: parts of which some are taken when their sender gives up") {
  Turns turns;
  on_worlds(2, [&](auto t) {
    SingleCopy& direct = *t->single_copy();
    constexpr std::size_t bytes = 300'000;
    Message m;
    if (t->rank() == 0) {
      Counting made{.next = 1, .unit = 4}, more{.next = 5, .unit = 4};
      turns.take(0, [&] { t->giving()->give(1, 7, made.source, bytes, m); });
      turns.take(2, [&] { t->progress(); });
      turns.take(4, [&] { t->cancel(m); });
      t->giving()->give(1, 7, more.source, bytes, m);
      finish(*t, m, "second");
    } else {
      Bytes got;
      direct.fetch(0, 7, {&got, append, 4}, bytes, m);
      turns.take(1, [&] { t->progress(); });  // takes the offer
      turns.take(3, [&] { t->progress(); });  // takes parts
      CHECK(got == counted(got.size(), 1));
      CHECK(!got.empty());
      turns.take(5, [] {});
      CHECK(holds(error_of([&] { finish(*t, m, "first"); }).what(), {"gave it up"}));
      got.clear();
      direct.fetch(0, 7, {&got, append, 4}, bytes, m);
      CHECK(finish(*t, m, "second") == bytes);
      CHECK(got == counted(bytes, 5));
    }
    contract::meet(*t);
  });
}

namespace {

/// A Destination that throws in the part that has the byte `at`.
struct Failing {
  std::size_t at;

  static void take(void* failing, std::byte*, std::size_t count) {
    auto& at = static_cast<Failing*>(failing)->at;
    if (at < count) throw std::runtime_error("no room");
    at -= count;
  }
};

}  // namespace

TEST_CASE("shm transport: what throws amid parts is its receive's, and other messages come") {
  constexpr std::size_t bytes = 300'000;
  for (const bool midway : {true, false})  // the exception is heard before the last part, or after
    for (const std::size_t fails_at : {std::size_t{0}, bytes - 1}) {
      if (midway && fails_at > 0) continue;
      Turns turns;
      std::atomic<bool> sent = false;
      on_worlds(2, [&](auto t) {
        SingleCopy& direct = *t->single_copy();
        Message first;
        std::vector<Message> others(2);
        if (t->rank() == 0) {
          Counting made{.next = 1, .unit = 1},
              more[]{{.next = 2, .unit = 1}, {.next = 3, .unit = 1}};
          turns.take(0, [&] { t->giving()->give(1, 7, made.source, bytes, first); });
          turns.take(2, [&] { t->progress(); });
          turns.take(4, [] {});
          if (!midway) finish(*t, first, "first");
          sent = true;
          for (int i = 0; i < 2; ++i) t->giving()->give(1, 8 + i, more[i].source, bytes, others[i]);
          if (midway) finish(*t, first, "first");
          for (Message& m : others) finish(*t, m, "send");
        } else {
          Failing failing{fails_at};
          direct.fetch(0, 7, {&failing, Failing::take, 1}, bytes, first);
          const auto hear = [&] {
            CHECK_THROWS_WITH_AS(finish(*t, first, "fetch"), "no room", std::runtime_error);
          };
          turns.take(1, [&] { t->progress(); });
          turns.take(3, [&] { midway ? hear() : t->progress(); });
          turns.take(5, [] {});
          while (!midway && !sent) t->progress();
          if (!midway) hear();
          Bytes got[2];
          for (int i = 0; i < 2; ++i)
            direct.fetch(0, 8 + i, {&got[i], append, 1}, bytes, others[i]);
          for (int i = 0; i < 2; ++i) {
            CHECK(finish(*t, others[i], "fetch") == bytes);
            CHECK(got[i] == counted(bytes, static_cast<std::uint8_t>(2 + i)));
          }
        }
        contract::meet(*t);
      });
    }
}

TEST_CASE("shm transport: messages are made in parts where rings have room") {
  for (const int size : {16, 17})
    on_worlds(size, [size](auto t) {
      CHECK(t->giving()->gives((t->rank() + 1) % size, 1) == (size == 16));
      contract::meet(*t);
    });
}

TEST_CASE("shm transport: a fetch that is given up amid parts, and another one") {
  Turns turns;
  on_worlds(2, [&](auto t) {
    constexpr std::size_t bytes = 300'000;
    Message m;
    if (t->rank() == 0) {
      Counting made{.next = 1, .unit = 1}, more{.next = 7, .unit = 1};
      turns.take(0, [&] { t->giving()->give(1, 7, made.source, bytes, m); });
      turns.take(2, [&] { t->progress(); });
      turns.take(4, [] {});
      finish(*t, m, "first");  // to its end
      t->giving()->give(1, 7, more.source, bytes, m);
      finish(*t, m, "second");
    } else {
      Bytes first, second;
      t->single_copy()->fetch(0, 7, {&first, append, 1}, bytes, m);
      turns.take(1, [&] { t->progress(); });
      turns.take(3, [&] { t->progress(); });
      CHECK(!first.empty());
      t->cancel(m);
      const std::size_t taken = first.size();
      t->single_copy()->fetch(0, 7, {&second, append, 1}, bytes, m);
      turns.take(5, [] {});
      CHECK(finish(*t, m, "second") == bytes);
      CHECK(second == counted(bytes, 7));
      CHECK(first.size() == taken);
    }
    contract::meet(*t);
  });
}
