/// The shared memory transport between threads, which map each other's memory as processes do.

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "baton/communicator.hpp"
#include "cases.hpp"
#include "contract.hpp"
#include "shm_worlds.hpp"
#include "support/ranks.hpp"
#include "transport/shm/ring.hpp"

using namespace baton;
using namespace std::chrono_literals;
using contract::Bytes;
using contract::finish;
using contract::pattern;
using shm_worlds::on_exchanges;
using shm_worlds::on_worlds;
using support::error_of;
using support::holds;

namespace {

/// While it lives, ranks do not read each other's memory.
struct InParts {
  InParts() { setenv("BATON_SINGLE_COPY", "0", 1); }
  ~InParts() { unsetenv("BATON_SINGLE_COPY"); }
};

/// Two ranks act in turn, amid a message.
class Turns {
 public:
  /// Waits for the turn `mine`; the next one, which is the other rank's, follows `act`.
  void take(int mine, const std::function<void()>& act) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (turn_ != mine) {
      if (std::chrono::steady_clock::now() > end)
        throw std::runtime_error("the other rank is late");
      std::this_thread::yield();
    }
    act();
    turn_ = mine + 1;
  }

 private:
  std::atomic<int> turn_{0};
};

void both_ways(const std::function<void()>& body) {
  SUBCASE("read in the sender's memory") { body(); }
  SUBCASE("in parts") {
    const InParts in_parts;
    body();
  }
}

}  // namespace

TEST_CASE("shm ring: records of all lengths come in order, whoever is faster") {
  constexpr std::size_t bytes = 2048;
  alignas(64) std::byte memory[bytes] = {};
  shm::RingHead head{};
  shm::RingWriter writer(head, memory, bytes);
  shm::RingReader reader(head, memory, bytes);
  std::uint64_t written = 0, taken = 0;
  const auto length = [](std::uint64_t number) { return number * 37 % 497; };
  std::minstd_rand random(1);
  while (taken < 20'000) {
    for (auto turns = random() % 9; turns > 0; --turns) {
      const std::size_t content = length(written);
      shm::Record* const record = writer.reserve(content);
      if (record == nullptr) break;
      record->bytes = static_cast<std::uint32_t>(content);
      record->tag = static_cast<std::int32_t>(written);
      std::memset(record->content(), static_cast<int>(written % 251), content);
      writer.publish(*record, shm::Kind::whole);
      ++written;
    }
    for (auto turns = random() % 9; turns > 0; --turns) {
      shm::Record* const record = reader.front();
      if (record == nullptr) break;
      REQUIRE(record->tag == static_cast<std::int32_t>(taken));
      REQUIRE(record->bytes == length(taken));
      REQUIRE(std::all_of(record->content(), record->content() + record->bytes,
                          [&](std::byte b) { return b == std::byte(taken % 251); }));
      reader.pop(*record);
      ++taken;
      CHECK_FALSE(reader.give_back());
    }
  }
}

TEST_CASE("shm ring: a full ring takes nothing until its reader gives back, and then tells so") {
  alignas(64) std::byte memory[2048] = {};
  shm::RingHead head{};
  shm::RingWriter writer(head, memory, sizeof memory);
  shm::RingReader reader(head, memory, sizeof memory);
  int count = 0;
  while (shm::Record* const record = writer.reserve(8)) {
    record->bytes = 8;
    writer.publish(*record, shm::Kind::whole);
    ++count;
  }
  CHECK(count == 31);  // a granule stays empty
  writer.await_room();
  CHECK(writer.reserve(8) == nullptr);
  reader.pop(*reader.front());
  CHECK(writer.reserve(8) == nullptr);
  CHECK(reader.give_back());
  CHECK(writer.reserve(8) != nullptr);
  CHECK_FALSE(reader.give_back());
}

TEST_CASE("shm transport: keeps the contract") {
  both_ways([] {
    for (int size : {1, 2, 3, 5, 8}) {
      CAPTURE(size);
      on_worlds(size, [](auto t) {
        contract::everything(*t, true);
        if (t->size() == 3) contract::traffic(*t, 40, 3);
        if (t->size() == 3) contract::traffic(*t, 6, 4, 3 << 20);
      });
    }
  });
}

TEST_CASE("shm transport: many ranks") {
  both_ways([] {
    on_worlds(48, [](auto t) {
      contract::traffic(*t, 3, 1);
      const auto part = t->split(t->rank() % 7, 0);
      contract::traffic(*part, 3, 2);
    });
  });
}

TEST_CASE("shm transport: a longer message is reported by its length and stays within its room") {
  both_ways([] {
    on_worlds(3, [](auto t) {
      const int next = (t->rank() + 1) % 3, last = (t->rank() + 2) % 3;
      for (const auto& [sent, room] : std::vector<std::pair<std::size_t, std::size_t>>{
               {16, 10}, {16, 0}, {8192, 100}, {60000, 59999}, {200000, 0}, {3 << 20, 2 << 20}})
        for (const int to : {next, t->rank()}) {
          const int from = to == next ? last : t->rank();
          const Bytes out = pattern(sent, sent), margin = pattern(sent + 4096, 9);
          Bytes in = margin;
          Message sending, receiving;
          t->isend(to, 4, out.data(), sent, sending);
          t->irecv(from, 4, in.data(), room, receiving);
          CHECK(finish(*t, receiving, "longer") == sent);
          CHECK(finish(*t, sending, "longer: send") == sent);
          const auto end = static_cast<std::ptrdiff_t>(room);
          CHECK(std::equal(in.begin(), in.begin() + end, out.begin()));
          CHECK(std::equal(in.begin() + end, in.end(), margin.begin() + end));
        }
    });
  });
}

TEST_CASE("shm transport: more messages than the ring and the offers have room for") {
  both_ways([] {
    on_worlds(3, [](auto t) {
      constexpr std::size_t count = 17'000;
      for (const std::size_t length : {std::size_t{100}, std::size_t{9000}}) {
        // Of the long ones, which nobody has asked for, some are given up again.
        const auto kept = [&](std::size_t i) { return length == 100 || i % 1000 != 2; };
        std::deque<Message> messages(count);
        const Bytes data = pattern(length + count, length);
        const auto part = [&](std::size_t i) { return data.data() + i; };
        if (t->rank() == 0) {
          for (std::size_t i = 0; i < count; ++i) t->isend(1, 5, part(i), length, messages[i]);
          for (std::size_t i = 0; i < count; ++i)
            if (!kept(i)) t->cancel(messages[i]);
          contract::send(*t, 2, 6, {});          // later messages to rank 1 wait
          for (std::size_t i = count; i-- > 0;)  // the last first
            if (kept(i)) finish(*t, messages[i], "many: send");
        } else if (t->rank() == 2) {
          contract::recv(*t, 0, 6, 0);
          contract::send(*t, 1, 6, {});
        } else {
          contract::recv(*t, 2, 6, 0);
          bool good = true;
          for (std::size_t i = 0; i < count; ++i)
            if (kept(i)) {
              const Bytes got = contract::recv(*t, 0, 5, length);
              good &= got.size() == length && std::equal(got.begin(), got.end(), part(i));
            }
          CHECK(good);
        }
      }
      contract::meet(*t);
    });
  });
}

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
          CHECK(got == pattern(length, 2));
        }
      }
      contract::meet(*t);
    });
  });
}

TEST_CASE("shm transport: a receive that is given up midway releases its sender") {
  both_ways([] {
    on_worlds(2, [](auto t) {
      constexpr std::size_t length = 5 << 20;
      Message m;
      std::size_t bytes = 0;
      if (t->rank() == 0) {
        const Bytes data = pattern(length, 1);
        t->isend(1, 7, data.data(), length, m);
        contract::send(*t, 1, 9, {});
        // In parts, it is sent to its end.
        if (std::getenv("BATON_SINGLE_COPY") != nullptr) {
          CHECK(finish(*t, m, "given up") == length);
        } else {
          const Error error = error_of([&] { finish(*t, m, "given up"); });
          CHECK_MESSAGE(holds(error.what(), {"rank 0", "with rank 1", "gave it up"}),
                        std::string(error.what()));
        }
      } else {
        Bytes room(length);
        contract::recv(*t, 0, 9, 0);
        t->irecv(0, 7, room.data(), length, m);
        CHECK_FALSE(t->test(m, bytes));
        t->cancel(m);
        room.assign(length, std::byte{7});
        contract::order(*t);
        CHECK(room == Bytes(length, std::byte{7}));
        return;
      }
      contract::order(*t);
    });
  });
}

TEST_CASE("shm transport: who waits for a rank that has left is told so, after what it sent") {
  on_worlds(3, [](auto t) {
    contract::meet(*t);
    if (t->rank() == 2) {
      contract::send(*t, 0, 1, pattern(500, 1));
      t.reset();
      return;
    }
    if (t->rank() != 0) return;
    Message m;
    Bytes room(10);
    t->irecv(2, 0, room.data(), room.size(), m);
    const auto told = [&](const Error& error) {
      CHECK(error.code == ErrorCode::transport);
      CHECK(error.rank == 0);
      CHECK(error.peer == 2);
      CHECK(holds(error.what(), {"rank 0", "with rank 2", "has left"}));
    };
    told(error_of([&] { finish(*t, m, "what never comes"); }));
    CHECK(contract::recv(*t, 2, 1, 500) == pattern(500, 1));
    told(error_of([&] { t->isend(2, 0, room.data(), room.size(), m); }));
  });
}

TEST_CASE("shm transport: who sleeps is woken by a message, a read and room") {
  on_worlds(2, [](auto t) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    const auto sleep_until_done = [&](Message& m) {
      for (std::size_t bytes = 0; !t->test(m, bytes);) {
        t->idle(1h);
        REQUIRE(std::chrono::steady_clock::now() < end);
      }
    };
    for (int round = 0; round < 10; ++round) {
      Message m;
      Bytes data(1 << 20);
      if (t->rank() == 0) {
        std::this_thread::sleep_for(20ms);
        contract::send(*t, 1, 1, {});
        std::this_thread::sleep_for(20ms);
        contract::recv(*t, 1, 2, data.size());
        std::this_thread::sleep_for(20ms);
        for (int i = 0; i < 1000; ++i) contract::recv(*t, 1, 3, 4000);
      } else {
        t->irecv(0, 1, nullptr, 0, m);
        sleep_until_done(m);
        t->isend(0, 2, data.data(), data.size(), m);
        sleep_until_done(m);
        for (int i = 0; i < 1000; ++i) {
          t->isend(0, 3, data.data(), 4000, m);
          sleep_until_done(m);
        }
      }
    }
  });
}

TEST_CASE("shm transport: several threads, each with groups of its own, which it splits") {
  on_worlds(2, [](auto t) { cases::threads_with_groups(*t, 3); }, {.concurrent = true});
}

TEST_CASE("shm transport: collectives") {
  both_ways([] {
    for (int size : {2, 5})
      on_worlds(size, [](auto t) {
        Communicator c(std::move(t), support::test_options());
        cases::collectives(c);
        cases::long_collectives(c);
        cases::probes(c);
      });
  });
}

TEST_CASE("shm transport: an operation that throws breaks the communicator, not the program") {
  both_ways([] {
    on_worlds(2, [](auto t) {
      Communicator c(std::move(t), support::giving_up_after(5s));
      const Op throws = Op::user([](void*, const void*, const void*, std::size_t,
                                    void*) { throw std::runtime_error("no sum today"); },
                                 nullptr, true, "throws");
      for (const std::size_t count : {4, 300, 50'000})
        for (const bool at_once : {true, false}) {
          Communicator part = c.split(0);
          std::vector<float> x(count, 1), y(count, 1);
          const auto failing = [&] {
            if (at_once) return part.all_reduce(x, throws, {"recursive_doubling", 0});
            Request other = part.start_all_reduce(y, throws);
            part.start_all_reduce(x, throws, {"ring", 0}).wait();
            other.wait();
          };
          try {
            failing();
            FAIL_CHECK("expected an exception");
          } catch (const std::exception& error) {
            // Of this rank's, or told by the other; or that gave up a message of this rank before.
            const std::string said = error.what();
            CHECK_MESSAGE((holds(said, {"no sum today"}) || holds(said, {"gave it up midway"})),
                          said);
          }
          CHECK(error_of([&] { part.barrier(); }).code != ErrorCode::unsupported);
          c.barrier();
        }
      std::vector<float> x(50'000, 1);
      c.all_reduce(x, sum);
      CHECK(x == std::vector<float>(50'000, 2));
    });
  });
}

TEST_CASE("shm transport: what a fold throws is its own receive's, whoever runs it") {
  on_worlds(2, [](auto t) {
    for (const std::size_t bytes : {1000, 100'000}) {  // from the ring, in the sender's memory
      REQUIRE(t->single_copy()->reads(1 - t->rank()));
      Message folded;
      const Bytes data(bytes);
      if (t->rank() == 0) {
        t->single_copy()->offer(1, 1, data.data(), bytes, folded);
        contract::send(*t, 1, 2, data);
        if (bytes == 1000)
          finish(*t, folded, "offer");
        else
          CHECK(holds(error_of([&] { finish(*t, folded, "offer"); }).what(), {"gave it up"}));
      } else {
        Message plain;
        Bytes room(bytes);
        t->single_copy()->fetch(
            0, 1,
            {.data = nullptr,
             .take = [](void*, std::byte*, std::size_t) { throw std::runtime_error("no fold"); }},
            bytes, folded);
        t->irecv(0, 2, room.data(), bytes, plain);
        CHECK(finish(*t, plain, "the other message") == bytes);
        CHECK_THROWS_WITH_AS(finish(*t, folded, "fetch"), "no fold", std::runtime_error);
      }
      contract::order(*t);
    }
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

TEST_CASE("shm transport: a forked child that ends does not end its parent's part") {
  auto t = shm_transport(0, 1, Exchange([](const Bytes& own) { return std::vector<Bytes>{own}; }));
  const pid_t child = fork();
  if (child == 0) {
    t.reset();
    _exit(0);
  }
  REQUIRE(waitpid(child, nullptr, 0) == child);
  contract::order(*t);
}

TEST_CASE("shm transport: what it says of itself") {
  on_worlds(3, [](auto t) {
    const Capabilities can = t->capabilities();
    CHECK(can.name == "shm");
    CHECK(can.tags >= 1'000'000);
    CHECK(!can.concurrent);
    CHECK(can.cancels);
    CHECK(can.probes);
    CHECK(can.cores == sysconf(_SC_NPROCESSORS_ONLN));
    CHECK(can.hosts == std::vector<int>{0, 0, 0});
  });
}

TEST_CASE("shm transport: a meeting that cannot be") {
  const auto says = [](const std::function<void()>& call, ErrorCode code,
                       const std::vector<std::string>& parts) {
    const Error error = error_of(call);
    CHECK(error.code == code);
    CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
  };
  const Exchange own_alone = [](const Bytes& own) { return std::vector<Bytes>{own}; };
  says([&] { shm_transport(0, 1025, own_alone); }, ErrorCode::invalid_argument,
       {"a shared memory transport has at most 1024 ranks, but found 1025"});
  says([&] { shm_transport(2, 2, own_alone); }, ErrorCode::invalid_argument,
       {"rank from 0 to size - 1, but found rank 2 of size 2"});
  says([&] { shm_transport(0, 1, Exchange()); }, ErrorCode::invalid_argument,
       {"a function that exchanges addresses was expected"});
  says([&] { shm_transport(0, 2, own_alone); }, ErrorCode::transport,
       {"expected to bring 2 blocks, but brought 1"});
  says([&] { shm_transport(0, 1, [](const Bytes&) { return std::vector<Bytes>(1); }); },
       ErrorCode::transport, {"the address of rank 0, but brought 0 bytes"});
  // One that comes alone, with the other's block.
  says(
      [&] {
        shm_transport(0, 2,
                      [](const Bytes& own) {
                        return std::vector<Bytes>{own, own};
                      },
                      {.meeting = 300ms});
      },
      ErrorCode::timeout, {"rank 0 has waited 300 ms", "missing: 1"});
}

TEST_CASE("shm transport: a rank that cannot map another's memory tells all") {
  constexpr int size = 4;
  std::int64_t told = 1'000'000;
  std::string found = "expected to open the shared memory of rank 1";
  SUBCASE("that is not there") {}
  SUBCASE("that is not this job's") {
    told = memfd_create("another", MFD_CLOEXEC);
    found = "expected the shared memory of rank 1 as file";
  }
  on_exchanges(size, [&](int rank, const Exchange& exchange) {
    const Exchange broken = [&](const Bytes& own) {
      auto blocks = exchange(own);
      if (rank == 2)  // it is told of another file
        std::memcpy(blocks[1].data() + blocks[1].size() - sizeof told, &told, sizeof told);
      return blocks;
    };
    const Error error = error_of([&] { shm_transport(rank, size, broken, {.meeting = 20'000ms}); });
    CHECK(error.code == ErrorCode::transport);
    CHECK_MESSAGE(holds(error.what(), {"rank 2", found}), std::string(error.what()));
  });
}
